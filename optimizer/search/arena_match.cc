// Why rewriting cannot close a cycle here: nodes are only ever added, and a new node's operands are
// there before it. A joint rewriting whose second root depends on the first one would therefore not
// loop; it would keep the first root alive next to its replacement, which is right but never
// better. Such matches are refused, so that what the search proposes is what Rewrite
// (core/rules/match.h) would make of it.
#include <algorithm>
#include <utility>

#include "core/rules/match.h"
#include "core/rules/match_engine.h"
#include "optimizer/search/arena.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

// The running nodes of one graph as a host of matching (core/rules/match_engine.h). Operators below
// the roots are found through operands, so rules with one output need no list of nodes.
class ArenaHost {
 public:
  ArenaHost(const RuleSet::Entry& entry, const Arena& arena) : entry_(entry), arena_(arena) {}
  // For rules with several outputs. `users` is sorted.
  void SetGraph(std::span<const NodeId> running, std::span<const std::pair<NodeId, NodeId>> users) {
    running_ = running;
    users_ = users;
  }

  std::int32_t class_of(std::int32_t node) const { return node; }
  std::span<const std::int32_t> operands(std::int32_t node) const { return at(node).operands; }
  bool Accepts(std::int32_t node, NodeId pattern) const {
    const Arena::OperatorFacts* op = arena_.facts_[std::size_t(node)].op;
    if (op == nullptr || op->skeleton != entry_.skeletons[std::size_t(pattern)]) return false;
    const rules::PatternOp& p = entry_.compiled.pattern_op(pattern);
    return p.symbolic || *at(node).op == *p.op;
  }
  void CopySizes(std::int32_t node, std::int64_t* out) const {
    for (const std::int64_t s : arena_.facts_[std::size_t(node)].op->sizes) *out++ = s;
  }
  template <class F>
  bool ForEachNode(std::int32_t c, NodeId, const F& f) const {
    return f(c);
  }
  template <class F>
  void ForEachWith(NodeId pattern, const F& f) const {
    for (const NodeId id : running_) {
      if (Accepts(id, pattern)) f(id);
    }
  }
  template <class F>
  void ForEachUser(std::int32_t c, const F& f) const {
    auto it = std::lower_bound(users_.begin(), users_.end(), std::pair<NodeId, NodeId>(c, 0));
    for (; it != users_.end() && it->first == c; ++it) f(it->second);
  }
  graph::DataType dtype(std::int32_t c) const { return at(c).type->dtype; }
  const graph::Extents* extents(std::int32_t c) const {
    if (scratch_node_ != c) {
      scratch_ = graph::Concrete(at(c).shape());
      scratch_node_ = c;
    }
    return &scratch_;
  }
  bool weights_only(std::int32_t c) const { return at(c).weights_only; }
  bool both_orders() const { return true; }

 private:
  const graph::Node& at(std::int32_t id) const { return arena_.graph().node(id); }
  const RuleSet::Entry& entry_;
  const Arena& arena_;
  std::span<const NodeId> running_;
  std::span<const std::pair<NodeId, NodeId>> users_;
  mutable graph::Extents scratch_;
  mutable std::int32_t scratch_node_ = -1;
};

namespace {

using Engine = rules::MatchEngine<ArenaHost>;

rules::Match MatchOf(const rules::CompiledRule& rule, const Engine& engine) {
  rules::Match m;
  m.nodes.assign(engine.classes().begin(), engine.classes().end());
  for (std::size_t k = 0; k < m.nodes.size(); ++k) {
    if (!rule.matched(NodeId(k))) m.nodes[k] = kNoNode;
  }
  m.values.assign(engine.values().begin(), engine.values().end());
  m.dtype = engine.dtype();
  return m;
}

// Beyond these a rule and a place are pathological, and the search has better things to do.
constexpr std::size_t kMatchesAtNode = 64;
constexpr std::size_t kJointMatches = 4096;

}  // namespace

std::optional<std::vector<NodeId>> Arena::Targets(int rule, const rules::Match& match) {
  const rules::CompiledRule& compiled = rules_.entries()[std::size_t(rule)].compiled;
  const auto built = rules::BuildTarget(compiled, match, g_);
  if (!built.ok()) return std::nullopt;
  std::vector<NodeId> targets;
  for (const NodeId id : *built) targets.push_back(Canonical(id));
  return targets;
}

const std::vector<Rewriting>& Arena::Alternatives(NodeId id) {
  if (facts_[std::size_t(id)].alternatives_known) return alternatives_[std::size_t(id)];
  std::vector<Rewriting> out;
  for (const int r : rules_.single(*g_.node(id).op)) {
    const RuleSet::Entry& entry = rules_.entries()[std::size_t(r)];
    const rules::CompiledRule& compiled = entry.compiled;
    // Most rules fail at the root.
    const int root = entry.skeletons[std::size_t(compiled.roots()[0])];
    if (facts_[std::size_t(id)].op->skeleton != root) continue;
    std::vector<rules::Match> matches;
    const ArenaHost host(entry, *this);
    Engine engine(compiled, host);
    engine.At(id, [&] {
      matches.push_back(MatchOf(compiled, engine));
      return matches.size() < kMatchesAtNode;
    });
    for (const rules::Match& match : matches) {
      auto targets = Targets(r, match);
      if (!targets || (*targets)[0] == id) continue;
      const bool known = std::any_of(out.begin(), out.end(), [&](const Rewriting& other) {
        return other.targets == *targets;
      });
      if (!known) out.push_back({r, {id}, *std::move(targets)});
    }
  }
  facts_[std::size_t(id)].alternatives_known = true;
  return alternatives_[std::size_t(id)] = std::move(out);
}

bool Arena::DependsOn(NodeId node, NodeId on) {
  std::vector<NodeId> below;
  Running(std::span(&node, 1), below);
  return std::binary_search(below.begin(), below.end(), on);
}

std::vector<Rewriting> Arena::JointAlternatives(std::span<const NodeId> running) {
  std::vector<Rewriting> out;
  if (!rules_.has_multiple()) return out;
  std::vector<std::pair<NodeId, NodeId>> users;
  for (const NodeId id : running) {
    for (const NodeId o : g_.node(id).operands) users.emplace_back(o, id);
  }
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());

  struct Found {
    int rule;
    rules::Match match;
    std::vector<NodeId> roots;
  };
  std::vector<Found> found;
  std::vector<std::vector<std::int32_t>> taken;  // Rule and sorted roots.
  for (const NodeId id : running) {
    for (const int r : rules_.multiple(*g_.node(id).op)) {
      const RuleSet::Entry& entry = rules_.entries()[std::size_t(r)];
      const rules::CompiledRule& compiled = entry.compiled;
      const int first = entry.skeletons[std::size_t(compiled.roots()[0])];
      if (facts_[std::size_t(id)].op->skeleton != first) continue;
      ArenaHost host(entry, *this);
      host.SetGraph(running, users);
      Engine engine(compiled, host);
      engine.At(id, [&] {
        std::vector<NodeId> roots;
        for (const NodeId root : compiled.roots()) roots.push_back(engine.class_at(root));
        std::vector<std::int32_t> key(roots.begin(), roots.end());
        std::sort(key.begin(), key.end());
        key.push_back(r);
        if (std::find(taken.begin(), taken.end(), key) == taken.end()) {
          taken.push_back(std::move(key));
          found.push_back({r, MatchOf(compiled, engine), std::move(roots)});
        }
        return found.size() < kJointMatches;
      });
    }
  }
  for (Found& f : found) {
    std::vector<std::int32_t> key{f.rule};
    key.insert(key.end(), f.roots.begin(), f.roots.end());
    auto it = joint_.find(key);
    if (it == joint_.end()) {
      bool cyclic = false;
      for (const NodeId a : f.roots) {
        for (const NodeId b : f.roots) cyclic = cyclic || (a != b && DependsOn(a, b));
      }
      std::vector<NodeId> targets;
      if (!cyclic) targets = Targets(f.rule, f.match).value_or(std::vector<NodeId>());
      it = joint_.emplace(std::move(key), std::move(targets)).first;
    }
    if (it->second.empty() || it->second == f.roots) continue;
    out.push_back({f.rule, std::move(f.roots), it->second});
  }
  return out;
}

}  // namespace tenon::optimizer
