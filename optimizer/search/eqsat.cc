// One pass: saturate within limits, extract, build, prove. What an e-graph holds beyond the limits
// is lost, so pieces are small (eqsat_rounds.cc), and what one pass finds the next one starts from.
//
// The derivation is what the proof of the result needs, in the order in which it was found. What a
// step is worth is found out by replaying: the cheapest graph that the steps up to it give.
#include "optimizer/search/eqsat.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "core/base/check.h"
#include "core/egraph/graph_proof.h"
#include "core/egraph/load.h"
#include "optimizer/search/merges.h"
#include "optimizer/search/space.h"

namespace tenon::optimizer {

using egraph::ClassId;

namespace {

// Costs are sums of doubles in varying order.
constexpr double kRounding = 1e-9;
// How long prices are still asked for when the time is up: a roofline has given all by then.
constexpr std::chrono::milliseconds kPricing(200);
constexpr egraph::EGraphOptions kOptions{.commutative = true, .keep_operands = true};

class Saturation {
 public:
  Saturation(const graph::Graph& g, const EqsatRules& rules, const Device& device,
             const EqsatLimits& limits)
      : piece_(g),
        rules_(rules),
        device_(device),
        limits_(limits),
        e_(rules.vocabulary(), kOptions),
        given_(CostOfGraph(device, g, g.outputs())) {}

  StatusOr<PieceResult> Run() {
    PieceResult result;
    result.cost_before_us = result.cost_after_us = given_.us;
    const egraph::SaturationResult saturated = Grow();
    result.complete = saturated.stop == egraph::SaturationResult::Stop::kSaturated;
    result.steps = saturated.iterations;
    result.graphs = std::int64_t(e_.node_count());
    result.extraction = Extraction{.cost_us = given_.us,
                                   .saturated = result.complete,
                                   .nodes = result.graphs,
                                   .iterations = saturated.iterations};
    ASSIGN_OR_RETURN(const extract::Result found, Extract(result.complete));
    if (found.verdict == extract::Verdict::kInfeasible) {
      if (!space_->complete()) return result;
      return base::Internal("the e-graph of a piece does not hold the piece");
    }
    graph::Graph best = space_->Build(found.choice);
    const GraphCost cost = CostOfGraph(device_, best, best.outputs());
    if (std::abs(cost.us - found.cost) > 1e-6 * given_.us) {
      return base::Internal(fmt::format("a graph of {:.9g} us was extracted as one of {:.9g} us",
                                        cost.us, found.cost));
    }
    Tell(found, cost.us, *result.extraction);
    result.improved = cost.us < given_.us * (1 - kRounding) ||
                      (cost.us <= given_.us * (1 + kRounding) && cost.nodes < given_.nodes);
    if (!result.improved) return result;
    result.cost_after_us = cost.us;
    RETURN_IF_ERROR(Derive(best, cost.us, result.moves));
    result.graph = std::move(best);
    return result;
  }

 private:
  bool Over() const { return limits_.stop.stop_requested() || (limits_.late && limits_.late()); }

  // What was left out of the space might have been cheaper.
  void Tell(const extract::Result& found, double cost_us, Extraction& extraction) const {
    extraction.cost_us = cost_us;
    extraction.classes = found.classes;
    if (!space_->complete()) return;
    extraction.optimal = found.verdict == extract::Verdict::kOptimal;
    const double bound = std::clamp(found.lower_bound - space_->surcharge_us(), 0.0, cost_us);
    extraction.lower_bound_us = extraction.optimal ? cost_us : bound;
  }

  egraph::SaturationResult Grow() {
    roots_ = egraph::AddGraph(e_, piece_, piece_.outputs());
    Merges merges(egraph::NodeId(e_.node_bound()), [this] { return Over(); });
    egraph::Saturator saturator(rules_.set());
    saturator.Record(&applications_);
    saturator.Supervise(&merges);
    return saturator.Run(e_, {.iterations = limits_.iterations,
                              .nodes = std::size_t(limits_.nodes),
                              .backoff = std::size_t(limits_.backoff),
                              .weights = false});
  }

  StatusOr<extract::Result> Extract(bool saturated) {
    const auto begun = std::chrono::steady_clock::now();
    space_.emplace(e_, piece_, roots_, device_, given_.us * (1 + kRounding),
                   [&] { return Over() && std::chrono::steady_clock::now() - begun > kPricing; });
    extract::Options options{.limits = limits_.extraction, .stop = limits_.stop};
    if (!saturated) {
      options.limits.classes = std::min(options.limits.classes, limits_.classes_unsaturated);
    }
    return extract::Extract(space_->problem(), options);
  }

  Status Derive(const graph::Graph& best, double cost_us, std::vector<Move>& moves) {
    ASSIGN_OR_RETURN(const egraph::GraphProof proof,
                     egraph::ProveGraph(rules_.set(), e_, applications_, piece_, best));
    RETURN_IF_ERROR(egraph::CheckProof(proof, rules_.set(), kOptions.commutative));
    egraph::EGraph replay(rules_.vocabulary(), kOptions);
    std::vector<ClassId> roots = egraph::AddGraph(replay, proof.graph, proof.from);
    double cost = given_.us;
    for (const egraph::ProofStep& step : proof.steps) {
      const std::vector<ClassId> matched = egraph::AddGraph(replay, proof.graph, step.matched);
      const std::vector<ClassId> made = egraph::AddGraph(replay, proof.graph, step.made);
      for (std::size_t k = 0; k < matched.size(); ++k) replay.Union(matched[k], made[k]);
      replay.Rebuild();
      ASSIGN_OR_RETURN(const double now, CheapestOf(replay, roots));
      cost = std::min(cost, now);
      moves.push_back({.rule = rules_.source(step.rule),
                       .forward = step.forward,
                       .sites = int(step.matched.size()),
                       .cost_us = cost});
    }
    if (moves.empty()) moves.push_back({});  // Equal operators became one.
    moves.back().cost_us = cost_us;
    return OkStatus();
  }

  // What greedy choice and local search find; the e-graphs of proofs are small.
  StatusOr<double> CheapestOf(const egraph::EGraph& g, std::span<const ClassId> roots) const {
    const Space space(g, piece_, roots, device_, given_.us * (1 + kRounding));
    extract::Options options{.stop = limits_.stop};
    options.limits.classes = 0;
    ASSIGN_OR_RETURN(const extract::Result found, extract::Extract(space.problem(), options));
    return found.cost;
  }

  const graph::Graph& piece_;
  const EqsatRules& rules_;
  const Device& device_;
  const EqsatLimits& limits_;
  egraph::EGraph e_;
  const GraphCost given_;
  std::vector<ClassId> roots_;
  std::vector<egraph::Application> applications_;
  std::optional<Space> space_;
};

}  // namespace

StatusOr<PieceResult> Saturate(const graph::Graph& g, const EqsatRules& rules, const Device& device,
                               const EqsatLimits& limits) {
  return Saturation(g, rules, device, limits).Run();
}

}  // namespace tenon::optimizer
