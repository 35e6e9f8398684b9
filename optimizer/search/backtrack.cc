// The idea is that of TASO's optimizer: a priority queue of graphs by cost, from which the cheapest
// is taken and replaced by all graphs that one rule makes of it, as long as they cost little more
// than the best one found. What is different:
//
//   * Graphs share their nodes in an Arena and are lists of outputs; matches are found once for
//   each
//     node and not once for each graph.
//   * Duplicates are found by a hash of the contents that does not depend on the order of nodes.
//   * Every third graph is taken by age, not by cost. There are always many graphs that cost as
//   much
//     as the best one and lead nowhere; by cost alone the search would never leave them.
//   * Moves of one rule that share what they add (Relu of a tensor, wanted by each of its slices)
//   are
//     made together, too: one of them alone adds the cost and gains nothing yet.
//   * A graph beyond the bound gets one chance: it is not queued, but what its new nodes can be
//     rewritten to is looked at, and queued where that is within the bound.
//
// It ends because graphs are expanded once each and `steps` bounds their number. An expansion costs
// (running nodes) x (alternatives) x (size of the graph).
//
// Rejected: undoing moves on one mutable graph (saves memory, but every graph is matched afresh).
#include "optimizer/search/backtrack.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "optimizer/search/arena.h"

namespace tenon::optimizer {

using graph::NodeId;

namespace {

// Costs are sums of doubles in varying order.
constexpr double kRounding = 1e-9;
// A graph beyond the bound is looked at if it costs at most so many times the bound.
constexpr double kSecondChance = 2.0;
// How many of its new nodes are looked at, from the replaced one upwards.
constexpr std::size_t kChanceRoots = 4;
constexpr double kSlackCeiling = 3.0;

struct State {
  std::vector<NodeId> outputs;
  double cost = 0;
  int nodes = 0;    // Running ones.
  int parent = -1;  // Index of the state it was made from.
  int rule = -1;
  int sites = 0;
  bool expanded = false;
};

class Backtracker {
 public:
  Backtracker(const graph::Graph& g, const RuleSet& rules, const Device& device,
              const BacktrackLimits& limits)
      : rules_(rules), arena_(g, rules, device), limits_(limits) {
    const GraphCost given = CostOfGraph(device, g, g.outputs());
    cost_given_ = given.us;
    nodes_given_ = given.nodes;
    State start;
    for (const NodeId id : g.outputs()) start.outputs.push_back(arena_.Canonical(id));
    Price(start);
    node_limit_ = 2 * start.nodes + 4;
    seen_.insert(HashOf(start.outputs));
    states_.push_back(std::move(start));
    Push(0);
  }

  PieceResult Run() {
    PieceResult result;
    result.cost_before_us = cost_given_;
    while (graphs_ < limits_.graphs && steps_ < limits_.steps &&
           steps_ - improved_at_ < limits_.patience) {
      if (limits_.stop && limits_.stop()) break;
      const std::optional<int> next = Pop();
      if (!next) {
        result.complete = true;
        break;
      }
      ++steps_;
      Expand(*next);
    }
    result.steps = steps_;
    result.graphs = graphs_;
    result.cost_after_us = states_[std::size_t(best_)].cost;
    result.improved = result.cost_after_us < result.cost_before_us * (1 - kRounding) ||
                      (result.cost_after_us <= result.cost_before_us &&
                       states_[std::size_t(best_)].nodes < nodes_given_);
    if (result.improved) Finish(result);
    return result;
  }

 private:
  double Bound() const {
    const double best = states_[std::size_t(best_)].cost;
    const double slack = std::min(best + limits_.slack_us, kSlackCeiling * best);
    return std::max(limits_.alpha * best, slack) * (1 + kRounding);
  }

  void Price(State& s) {
    running_scratch_.clear();
    arena_.Running(s.outputs, running_scratch_);
    s.nodes = int(running_scratch_.size());
    s.cost = 0;
    for (const NodeId id : running_scratch_) s.cost += arena_.cost(id);
  }

  Hash128 HashOf(const std::vector<NodeId>& outputs) const {
    Hash128 all{0x9e3779b97f4a7c15ull, outputs.size()};
    for (const NodeId id : outputs) {
      const Hash128& h = arena_.hash(id);
      all.low = (all.low ^ h.low) * 0xff51afd7ed558ccdull;
      all.low ^= all.low >> 32;
      all.high = (all.high ^ h.high) * 0xc4ceb9fe1a85ec53ull;
      all.high ^= all.high >> 29;
    }
    return all;
  }

  struct Cheaper {  // For a queue whose top is the cheapest, then the smallest, then the oldest.
    const std::vector<State>& states;
    bool operator()(int a, int b) const {
      const State &x = states[std::size_t(a)], &y = states[std::size_t(b)];
      if (x.cost != y.cost) return x.cost > y.cost;
      if (x.nodes != y.nodes) return x.nodes > y.nodes;
      return a > b;
    }
  };

  void Push(int state) {
    by_cost_.push(state);
    by_age_.push(state);
  }

  // The next state to expand; none when all within the bound are.
  std::optional<int> Pop() {
    ++pops_;
    const double bound = Bound();
    const auto usable = [&](int s) {
      return !states_[std::size_t(s)].expanded && states_[std::size_t(s)].cost <= bound;
    };
    if (pops_ % 3 == 0) {
      while (!by_age_.empty()) {
        const int s = by_age_.front();
        by_age_.pop();
        if (usable(s)) return s;
      }
    }
    while (!by_cost_.empty()) {
      const int s = by_cost_.top();
      by_cost_.pop();
      if (usable(s)) return s;
    }
    return std::nullopt;
  }

  // All moves from a state, or, given `among`, those that replace one of these nodes.
  std::vector<Rewriting> MovesFrom(const std::vector<NodeId>& running,
                                   const std::vector<NodeId>* among) {
    const auto wanted = [&](NodeId id) {
      return among == nullptr || std::find(among->begin(), among->end(), id) != among->end();
    };
    std::vector<Rewriting> moves;
    for (const NodeId id : running) {
      if (!wanted(id)) continue;
      const std::vector<Rewriting>& alternatives = arena_.Alternatives(id);
      moves.insert(moves.end(), alternatives.begin(), alternatives.end());
    }
    AddShared(running, moves);
    for (Rewriting& r : arena_.JointAlternatives(running)) {
      if (std::any_of(r.roots.begin(), r.roots.end(), wanted)) moves.push_back(std::move(r));
    }
    return moves;
  }

  // Adds the moves that make several of `moves` at once, where these are of one rule and share a
  // node that is not there yet and costs something.
  void AddShared(const std::vector<NodeId>& running, std::vector<Rewriting>& moves) {
    arena_.Mark(running);
    std::map<std::pair<int, NodeId>, std::vector<std::size_t>> by_new_node;
    std::vector<NodeId> added;
    for (std::size_t k = 0; k < moves.size(); ++k) {
      added.clear();
      arena_.RunningUnmarked(moves[k].targets[0], added);
      for (const NodeId id : added) {
        if (arena_.cost(id) > 0) by_new_node[{moves[k].rule, id}].push_back(k);
      }
    }
    std::vector<std::vector<std::size_t>> done;
    for (const auto& [key, members] : by_new_node) {
      if (members.size() < 2 || std::find(done.begin(), done.end(), members) != done.end())
        continue;
      done.push_back(members);
      Rewriting all{key.first, {}, {}};
      for (const std::size_t k : members) {
        if (std::find(all.roots.begin(), all.roots.end(), moves[k].roots[0]) != all.roots.end()) {
          continue;  // A root is replaced once.
        }
        all.roots.push_back(moves[k].roots[0]);
        all.targets.push_back(moves[k].targets[0]);
      }
      if (all.roots.size() >= 2) moves.push_back(std::move(all));
    }
  }

  State Apply(const State& from, const std::vector<NodeId>& running, const Rewriting& move) {
    State to;
    to.outputs = arena_.Replace(from.outputs, running, move.roots, move.targets);
    to.rule = move.rule;
    to.sites = int(move.roots.size());
    Price(to);
    ++graphs_;
    return to;
  }

  void Expand(int index) {
    states_[std::size_t(index)].expanded = true;
    const State from = states_[std::size_t(index)];
    std::vector<NodeId> running;
    arena_.Running(from.outputs, running);
    for (const Rewriting& move : MovesFrom(running, nullptr)) {
      State to = Apply(from, running, move);
      to.parent = index;
      if (to.nodes > node_limit_) continue;
      const double bound = Bound();
      if (to.cost <= bound) {
        if (seen_.insert(HashOf(to.outputs)).second) Add(std::move(to));
      } else if (limits_.alpha > 1 && to.cost <= kSecondChance * bound) {
        if (chances_.insert(HashOf(to.outputs)).second) SecondChance(std::move(to), running);
      }
      if (graphs_ >= limits_.graphs) return;
    }
  }

  int Add(State s) {
    const int index = int(states_.size());
    const State& best = states_[std::size_t(best_)];
    const bool better = s.cost < best.cost * (1 - kRounding) ||
                        (s.cost <= best.cost * (1 + kRounding) && s.nodes < best.nodes);
    const bool queued = !s.expanded;
    states_.push_back(std::move(s));
    if (better) {
      best_ = index;
      improved_at_ = steps_;
    }
    if (queued) Push(index);
    return index;
  }

  // `beyond` costs more than the bound: what can its new nodes be rewritten to?
  void SecondChance(State beyond, const std::vector<NodeId>& parent_running) {
    std::vector<NodeId> running, fresh;
    arena_.Running(beyond.outputs, running);
    for (const NodeId id : running) {
      const bool old = std::binary_search(parent_running.begin(), parent_running.end(), id);
      if (!old && fresh.size() < kChanceRoots) fresh.push_back(id);
    }
    int index = -1;
    for (const Rewriting& move : MovesFrom(running, &fresh)) {
      State to = Apply(beyond, running, move);
      if (to.nodes > node_limit_ || to.cost > Bound()) continue;
      if (!seen_.insert(HashOf(to.outputs)).second) continue;
      if (index < 0) {
        beyond.expanded = true;
        State kept = beyond;
        index = Add(std::move(kept));
      }
      to.parent = index;
      Add(std::move(to));
    }
  }

  void Finish(PieceResult& result) {
    for (int s = best_; states_[std::size_t(s)].parent >= 0; s = states_[std::size_t(s)].parent) {
      const State& state = states_[std::size_t(s)];
      const RuleSet::Entry& entry = rules_.entries()[std::size_t(state.rule)];
      result.moves.push_back({entry.source, entry.forward(), state.sites, state.cost});
    }
    if (states_[0].nodes < nodes_given_) {
      result.moves.push_back({.cost_us = states_[0].cost});
    }
    std::reverse(result.moves.begin(), result.moves.end());
    // Without the arena's other nodes.
    const graph::Graph& all = arena_.graph();
    graph::Graph& out = result.graph;
    std::vector<NodeId> image(all.size(), graph::kNoNode);
    for (std::int32_t k = 0; k < std::int32_t(all.inputs().size()); ++k) {
      const NodeId id = all.input_node(k);
      image[std::size_t(id)] =
          out.AddInput(all.input(k).name, all.input(k).kind, *all.node(id).type);
    }
    const std::vector<NodeId>& roots = states_[std::size_t(best_)].outputs;
    std::vector<NodeId> operands;
    for (const NodeId id : all.Reachable(roots)) {
      const graph::Node& n = all.node(id);
      if (n.is_input()) continue;
      operands.clear();
      for (const NodeId o : n.operands) operands.push_back(image[std::size_t(o)]);
      image[std::size_t(id)] = out.AddTrusted(n, operands);
    }
    std::vector<NodeId> outputs;
    for (const NodeId id : roots) outputs.push_back(image[std::size_t(id)]);
    out.SetOutputs(std::move(outputs));
  }

  const RuleSet& rules_;
  Arena arena_;
  const BacktrackLimits& limits_;
  std::vector<State> states_;
  std::priority_queue<int, std::vector<int>, Cheaper> by_cost_{Cheaper{states_}};
  std::queue<int> by_age_;
  std::unordered_set<Hash128, HashOfHash128> seen_, chances_;
  std::vector<NodeId> running_scratch_;
  double cost_given_ = 0;
  int nodes_given_ = 0;
  int best_ = 0;
  int node_limit_ = 0;
  std::int64_t pops_ = 0, steps_ = 0, graphs_ = 0, improved_at_ = 0;
};

}  // namespace

PieceResult Backtrack(const graph::Graph& g, const RuleSet& rules, const Device& device,
                      const BacktrackLimits& limits) {
  return Backtracker(g, rules, device, limits).Run();
}

}  // namespace tenon::optimizer
