// The invariant: whatever the instance loses, no choice cheaper than the incumbent is lost. So when
// nothing is left, or the relaxation cannot be solved, or its value reaches the incumbent's cost,
// the incumbent is optimal (over what the instance had at first).
//
// What did not work: order variables with big-M and lazy cycle cuts (no solution of cyclic e-graphs
// of real networks in a minute); must-have rows for all pairs at once (too many).
#include "optimizer/extract/solver.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

#include "optimizer/extract/greedy.h"
#include "optimizer/extract/landmark.h"
#include "optimizer/extract/local_search.h"
#include "optimizer/extract/must_have.h"
#include "optimizer/extract/reduce.h"
#include "optimizer/extract/separate.h"

namespace tenon::optimizer::extract {
namespace {

constexpr std::size_t kMustHavesPerRound = 2000;
constexpr std::int64_t kRoundSteps = 3'000'000;  // Of local search, from a relaxed solution.

}  // namespace

Solver::Solver(Instance g, const Limits& limits, Stage found_by, Incumbent& incumbent)
    : g_(std::move(g)), limits_(limits), found_by_(found_by), incumbent_(incumbent) {}

void Solver::Tighten(const Stop& stop) {
  constexpr int kPasses = 12;
  for (int pass = 0; pass < kPasses && !Done() && !stop.Now(); ++pass) {
    if (TightenOnce(stop) == Pass::kEnough) break;
  }
}

Solver::Pass Solver::TightenOnce(const Stop& stop) {
  Reduce(g_, incumbent_.cost);
  if (!KillUseless(g_)) {
    bound_ = incumbent_.cost;
    return Pass::kEnough;
  }
  const int at_start = g_.num_alive();
  const MustHave must(g_);
  std::vector<ClassId> needed;
  ForEachBit(must.Union(g_.problem().roots), [&](ClassId e) { needed.push_back(e); });
  program_ = std::make_unique<Program>(g_, std::max(incumbent_.cost, 1e-300) * 1e-4, needed);
  program_->Add(pool_);
  LandmarkFinder finder(g_);
  std::vector<double> history;
  for (int round = 0; round < limits_.relaxation_rounds; ++round) {
    const Program::Outcome outcome = program_->Solve(stop);
    if (outcome == Program::Outcome::kStopped) {
      // Its basis and cuts are not those of a solution: an integer program needs neither.
      return Pass::kEnough;
    }
    if (outcome == Program::Outcome::kInfeasible) {
      bound_ = incumbent_.cost;
      return Pass::kEnough;
    }
    bound_ = std::max(bound_, program_->objective());
    if (round % 4 == 0) Round(stop);
    if (Done()) return Pass::kEnough;
    FixByReducedCost();
    if (round > 0 && g_.num_alive() < 0.9 * at_start) break;
    // Tailing off: three rounds that closed less than a fiftieth of the gap.
    history.push_back(program_->objective());
    const double gap = incumbent_.cost - bound_;
    if (history.size() > 4 && history.back() - history[history.size() - 4] < 0.02 * gap) break;
    std::vector<Cut> cuts = BrokenMustHaves(g_, must, *program_, kMustHavesPerRound);
    std::vector<Cut> landmarks =
        BrokenLandmarks(g_, finder, *program_, std::size_t(limits_.landmark_classes),
                        limits_.landmark_steps, ++round_);
    cuts.insert(cuts.end(), std::make_move_iterator(landmarks.begin()),
                std::make_move_iterator(landmarks.end()));
    if (cuts.empty()) break;
    if (round % 4 == 3) program_->DropSlackCuts();
    program_->Add(cuts);
  }
  if (program_->Solve(stop) == Program::Outcome::kOptimal) {
    bound_ = std::max(bound_, program_->objective());
    Round(stop);
    FixByReducedCost();
    pool_.clear();
    for (Cut& cut : program_->DropSlackCuts()) {
      if (cut.sense == Cut::Sense::kAtLeast) pool_.push_back(std::move(cut));
    }
  }
  return g_.num_alive() < 0.97 * at_start ? Pass::kAgain : Pass::kEnough;
}

int Solver::FixByReducedCost() {
  // A solution with x_n = 1 costs at least the objective and the reduced cost of x_n.
  const double gap = (incumbent_.cost - program_->objective()) + 1e-7 * incumbent_.cost;
  int fixed = 0;
  for (NodeId n = 0; n < g_.num_nodes(); ++n) {
    if (!g_.alive(n) || program_->reduced_cost(n) <= gap) continue;
    program_->Forbid(n);
    g_.Kill(n);
    ++fixed;
  }
  if (fixed > 0) g_.Refresh();
  return fixed;
}

void Solver::Round(const Stop& stop) {
  // What the relaxation takes is cheap. Nodes that it does not take keep their cost.
  std::vector<double> costs(std::size_t(g_.num_nodes()), 0);
  for (NodeId n = 0; n < g_.num_nodes(); ++n) {
    if (g_.alive(n)) costs[std::size_t(n)] = g_.cost(n) * (1.001 - program_->taken(n));
  }
  for (const bool dag : {true, false}) {
    Choice choice = dag ? GreedyDag(g_, costs) : GreedyTree(g_, costs);
    if (!Cost(g_.problem(), choice)) continue;
    std::int64_t steps = std::min(kRoundSteps, limits_.search_steps);
    LocalSearch(g_, choice, steps, stop);
    incumbent_.Offer(choice, Stage::kRelaxation);
  }
}

void Solver::Branch(const Stop& stop) {
  for (int i = 0; i < limits_.integer_programs && !stop.Now(); ++i) {
    Tighten(stop);
    if (Done() || program_ == nullptr || stop.Now()) return;
    const Program::Integer found = program_->SolveInteger(incumbent_.cost, limits_.branches, stop);
    if (stop.Asked()) return;
    bound_ = std::max(bound_, found.bound);
    if (!found.found) return;
    Choice choice(std::size_t(g_.num_classes()), kNoNode);
    for (const NodeId n : found.taken) choice[std::size_t(g_.eclass(n))] = n;
    if (Cost(g_.problem(), choice)) {
      incumbent_.Offer(choice, found_by_);
      if (found.finished) return;
    }
    LandmarkFinder finder(g_);
    std::vector<Cut> cuts = CycleLandmarks(g_, finder, found.taken);
    if (cuts.empty()) return;
    pool_.insert(pool_.end(), std::make_move_iterator(cuts.begin()),
                 std::make_move_iterator(cuts.end()));
  }
}

Instance Ordered(const Instance& g, const Choice& choice) {
  Instance h = g;
  for (const NodeId n : choice) {
    if (n != kNoNode) h.Revive(n);
  }
  h.Refresh();
  // A choice for every class: the given one, and around it a greedy one.
  std::vector<double> costs(std::size_t(h.num_nodes()), 0);
  Instance around = h;
  for (NodeId n = 0; n < h.num_nodes(); ++n) {
    costs[std::size_t(n)] = h.cost(n);
    const NodeId chosen = choice[std::size_t(h.eclass(n))];
    if (chosen != kNoNode && chosen != n) around.Kill(n);
  }
  around.Refresh();
  const Choice all = GreedyTree(around, costs);

  // Kahn from the leaves; of the classes that are ready, the one with the fewest nodes that wait
  // for others: few are lost.
  const auto classes = std::size_t(h.num_classes());
  std::vector<std::size_t> missing(std::size_t(h.num_nodes())), waiting(classes, 0);
  for (NodeId n = 0; n < h.num_nodes(); ++n) {
    missing[std::size_t(n)] = h.children(n).size();
    if (h.alive(n) && !h.children(n).empty()) ++waiting[std::size_t(h.eclass(n))];
  }
  using Entry = std::pair<std::size_t, ClassId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto is_ready = [&](ClassId c) {
    const NodeId n = all[std::size_t(c)];
    return n != kNoNode && missing[std::size_t(n)] == 0;
  };
  std::vector<int> rank(classes, -1);
  int next = 0;
  for (ClassId c = 0; c < h.num_classes(); ++c) {
    if (is_ready(c)) ready.emplace(waiting[std::size_t(c)], c);
  }
  while (!ready.empty()) {
    const auto [wait, c] = ready.top();
    ready.pop();
    if (rank[std::size_t(c)] >= 0) continue;
    rank[std::size_t(c)] = next++;
    for (const NodeId n : h.users(c)) {
      if (--missing[std::size_t(n)] > 0) continue;
      const ClassId user = h.eclass(n);
      --waiting[std::size_t(user)];
      // Entered again whenever it waits for less; what is outdated comes later.
      if (rank[std::size_t(user)] < 0 && is_ready(user)) {
        ready.emplace(waiting[std::size_t(user)], user);
      }
    }
  }
  for (NodeId n = 0; n < h.num_nodes(); ++n) {
    const int own = rank[std::size_t(h.eclass(n))];
    const auto late = [&](ClassId d) {
      return rank[std::size_t(d)] < 0 || rank[std::size_t(d)] >= own;
    };
    if (own < 0 || std::any_of(h.children(n).begin(), h.children(n).end(), late)) h.Kill(n);
  }
  h.Refresh();
  return h;
}

}  // namespace tenon::optimizer::extract
