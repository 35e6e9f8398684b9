#include "optimizer/extract/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "optimizer/extract/greedy.h"
#include "optimizer/extract/local_search.h"
#include "optimizer/extract/solver.h"

namespace tenon::optimizer::extract {
namespace {

// The living part of an instance with numbers of its own, so that sets of classes are small.
struct Part {
  Problem problem;
  std::vector<ClassId> classes;  // Of the whole, for each of the part.
  std::vector<NodeId> nodes;

  explicit Part(const Instance& g) {
    std::vector<ClassId> number(std::size_t(g.num_classes()), -1);
    for (ClassId c = 0; c < g.num_classes(); ++c) {
      if (g.nodes(c).empty()) continue;
      number[std::size_t(c)] = ClassId(classes.size());
      classes.push_back(c);
    }
    problem.num_classes = ClassId(classes.size());
    for (NodeId n = 0; n < g.num_nodes(); ++n) {
      if (!g.alive(n)) continue;
      Node node{.eclass = number[std::size_t(g.eclass(n))], .cost = g.cost(n), .children = {}};
      for (const ClassId c : g.children(n)) node.children.push_back(number[std::size_t(c)]);
      problem.nodes.push_back(std::move(node));
      nodes.push_back(n);
    }
    for (const ClassId r : g.problem().roots) {
      const ClassId root = number[std::size_t(r)];
      if (std::find(problem.roots.begin(), problem.roots.end(), root) == problem.roots.end()) {
        problem.roots.push_back(root);
      }
    }
  }

  Choice Whole(const Choice& choice, ClassId num_classes) const {
    Choice whole(std::size_t(num_classes), kNoNode);
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (choice[c] != kNoNode) whole[std::size_t(classes[c])] = nodes[std::size_t(choice[c])];
    }
    return whole;
  }
};

// All stages, on a problem without useless nodes whose roots can be computed.
class Run {
 public:
  Run(const Problem& problem, const Options& options)
      : problem_(problem),
        options_(options),
        stop_(options.stop, options.limits.deadline),
        g_(problem) {
    incumbent_.problem = &problem;
  }

  void All() {
    bound_ = PathBound(g_);
    Greedy();
    if (Enough()) return;
    std::int64_t steps = options_.limits.search_steps;
    Choice choice = incumbent_.choice;
    LocalSearch(g_, choice, steps, stop_);
    incumbent_.Offer(choice, Stage::kLocalSearch);
    Say(Stage::kLocalSearch);
    if (Enough() || problem_.num_classes > options_.limits.classes) return;
    Programs();
  }

  bool Done() const { return bound_ >= incumbent_.cost * (1 - kTolerance); }
  // A choice cheaper than what was proved: the solver is wrong, and all it said is void.
  bool Contradicted() const { return bound_ > incumbent_.cost * (1 + 10 * kTolerance); }
  double bound() const { return Done() ? incumbent_.cost : bound_; }
  const Incumbent& incumbent() const { return incumbent_; }
  bool interrupted() const { return interrupted_; }

 private:
  bool Enough() {
    if (Done()) return true;
    interrupted_ = stop_.Now();
    return interrupted_;
  }
  void Say(Stage stage) {
    if (options_.progress) options_.progress({stage, incumbent_.cost, bound()});
  }

  void Greedy() {
    std::vector<double> costs;
    for (const Node& n : problem_.nodes) costs.push_back(n.cost);
    incumbent_.Offer(GreedyTree(g_, costs), Stage::kGreedy);
    CHECK(!incumbent_.choice.empty() || problem_.roots.empty());
    if (problem_.num_classes <= options_.limits.classes && !stop_.Now()) {
      incumbent_.Offer(GreedyDag(g_, costs), Stage::kGreedy);
    }
    Say(Stage::kGreedy);
  }

  // A stage may take a part of the time that is left, when there is a deadline.
  Stop Share(double part) const {
    const std::optional<double> left = stop_.SecondsLeft();
    return left ? stop_.Within(*left * part) : stop_;
  }

  void Programs() {
    Solver full(g_, options_.limits, Stage::kFull, incumbent_);
    full.Tighten(Share(0.4));
    bound_ = std::max(bound_, full.bound());
    Say(Stage::kRelaxation);
    if (Enough()) return;
    // A solution gives a better order: again, as long as it helps.
    const bool acyclic = IsAcyclic(full.instance());
    for (bool improved = !acyclic; improved && !full.Done();) {
      const double before = incumbent_.cost;
      Solver ordered(Ordered(full.instance(), Needed(problem_, incumbent_.choice)), options_.limits,
                     Stage::kOrdered, incumbent_);
      ordered.Branch(Share(0.3));
      Say(Stage::kOrdered);
      improved = incumbent_.cost < before * (1 - kTolerance);
      if (Enough()) return;
    }
    full.Branch(stop_);
    bound_ = std::max(bound_, full.bound());
    Enough();
    Say(Stage::kFull);
  }

  const Problem& problem_;
  const Options& options_;
  const Stop stop_;
  Instance g_;
  Incumbent incumbent_;
  double bound_ = 0;
  bool interrupted_ = false;
};

}  // namespace

StatusOr<Result> Extract(const Problem& problem, const Options& options) {
  RETURN_IF_ERROR(Validate(problem));
  Result result;
  result.choice.assign(std::size_t(problem.num_classes), kNoNode);
  Instance g(problem);
  if (!KillUseless(g)) return result;
  const Part part(g);
  result.classes = part.problem.num_classes;
  result.nodes = int(part.problem.nodes.size());

  Run run(part.problem, options);
  run.All();
  if (run.Contradicted()) {
    return base::Internal(fmt::format(
        "e-graph of {} classes: a choice is cheaper than the bound that the solver gave",
        problem.num_classes));
  }
  result.choice = Needed(problem, part.Whole(run.incumbent().choice, problem.num_classes));
  const std::optional<double> cost = Cost(problem, result.choice);
  CHECK(cost.has_value());
  result.cost = *cost;
  // Summed in another order, the same cost may differ in its last bits.
  result.lower_bound = std::min(run.bound(), result.cost);
  result.verdict = run.Done() ? Verdict::kOptimal : Verdict::kFeasible;
  if (run.Done()) result.lower_bound = result.cost;
  result.found_by = run.incumbent().stage;
  result.interrupted = run.interrupted();
  return result;
}

std::string_view Name(Stage stage) {
  switch (stage) {
    case Stage::kGreedy:
      return "greedy";
    case Stage::kLocalSearch:
      return "local search";
    case Stage::kRelaxation:
      return "relaxation";
    case Stage::kOrdered:
      return "ordered integer program";
    case Stage::kFull:
      return "integer program";
  }
  CHECK(false);
  return "";
}

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOptimal:
      return "optimal";
    case Verdict::kFeasible:
      return "feasible";
    case Verdict::kInfeasible:
      return "infeasible";
  }
  CHECK(false);
  return "";
}

}  // namespace tenon::optimizer::extract
