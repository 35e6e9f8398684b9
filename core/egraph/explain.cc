#include "core/egraph/explain.h"

#include <fmt/core.h>

#include "core/egraph/closure.h"
#include "core/egraph/instances.h"
#include "core/egraph/load.h"

namespace tenon::egraph {
namespace {

class Explainer {
 public:
  Explainer(const RuleSet& rules, const EGraph& g, const graph::Graph& instance)
      : rules_(rules),
        closure_(rules.vocabulary(), out_.graph, /*commutative=*/false),
        instances_(rules, g, out_.graph) {
    out_.graph = instance;
  }

  StatusOr<rules::Derivation> Explain(std::span<const Application> applications, TermNode from,
                                      TermNode to) {
    closure_.Grow();
    for (const Application& a : applications) {
      if (closure_.Equal(from, to)) break;
      RETURN_IF_ERROR(Repeat(a));
    }
    if (!closure_.Equal(from, to)) return base::Internal("the rules do not join the terms again");
    if (!Write(from, to)) {
      return base::ResourceExhausted(
          fmt::format("the derivation has more than {} steps", kDerivationStepsMax));
    }
    out_.from = from;
    out_.to = to;
    RETURN_IF_ERROR(CutLoops());
    return std::move(out_);
  }

 private:
  // Both sides of the rule as terms, united.
  Status Repeat(const Application& a) {
    ASSIGN_OR_RETURN(Instances::Made made, instances_.Repeat(a));
    closure_.Grow();
    const TermNode left = made.left, right = made.right;
    made_.push_back(std::move(made));
    closure_.Unite(left, right, static_cast<std::int32_t>(made_.size() - 1));
    return OkStatus();
  }

  // Appends the steps from one term to the other, which stand at place_. False: too many.
  bool Write(TermNode from, TermNode to) {
    const std::vector<TermNode> path = closure_.Path(from, to);
    for (std::size_t k = 0; k + 1 < path.size(); ++k) {
      const std::int32_t application = closure_.Between(path[k], path[k + 1]);
      if (application == Closure::kCongruence) {
        if (!WriteOperands(path[k], path[k + 1])) return false;
        continue;
      }
      if (out_.steps.size() == kDerivationStepsMax) return false;
      const Instances::Made& m = made_[std::size_t(application)];
      out_.steps.push_back({.rule = m.rule,
                            .forward = m.forward == (m.left == path[k]),
                            .output = m.output,
                            .values = m.values,
                            .inputs = m.inputs,
                            .place = place_});
    }
    return true;
  }

  // Their operands are equal, by what was known earlier than that they are equal themselves: the
  // recursion ends.
  bool WriteOperands(TermNode from, TermNode to) {
    const std::size_t arity = out_.graph.node(from).operands.size();
    for (std::size_t k = 0; k < arity; ++k) {
      const TermNode a = out_.graph.node(from).operands[k], b = out_.graph.node(to).operands[k];
      if (a == b) continue;
      place_.push_back(static_cast<std::int32_t>(k));
      if (!Write(a, b)) return false;
      place_.pop_back();
    }
    return true;
  }

  // Steps that lead back to a term that was there before are left out.
  Status CutLoops() {
    std::vector<std::shared_ptr<const rules::Rule>> by_number(std::size_t(rules_.count()));
    for (const EGraphRule& r : rules_.directions()) {
      by_number[std::size_t(r.number())] = r.compiled().shared_rule();
    }
    ASSIGN_OR_RETURN(const rules::Replayed replayed, rules::Replay(out_, by_number));
    std::vector<rules::DerivationStep> kept;
    for (std::size_t k = 0; k < out_.steps.size();) {
      // From the last time that this term stood there.
      std::size_t last = k;
      for (std::size_t j = k; j < replayed.states.size(); ++j) {
        if (replayed.states[j] == replayed.states[k]) last = j;
      }
      if (last == out_.steps.size()) break;
      kept.push_back(out_.steps[last]);
      k = last + 1;
    }
    out_.steps = std::move(kept);
    return OkStatus();
  }

  const RuleSet& rules_;
  rules::Derivation out_;
  Closure closure_;
  Instances instances_;
  std::vector<Instances::Made> made_;
  std::vector<std::int32_t> place_;
};

}  // namespace

StatusOr<std::optional<rules::Derivation>> Derive(const RuleSet& rules,
                                                  const graph::Graph& instance, graph::NodeId from,
                                                  graph::NodeId to,
                                                  const SaturationLimits& limits) {
  EGraph g(rules.vocabulary(), {.keep_operands = true});
  std::vector<graph::NodeId> roots = instance.outputs();
  roots.push_back(from);
  roots.push_back(to);
  const std::vector<ClassId> classes = AddGraph(g, instance, roots);
  const Goal goal{classes[classes.size() - 2], classes.back()};
  Saturator saturator(rules);
  std::vector<Application> applications;
  saturator.Record(&applications);
  if (saturator.Run(g, limits, goal).stop != SaturationResult::Stop::kGoal) return std::nullopt;
  ASSIGN_OR_RETURN(rules::Derivation found,
                   Explainer(rules, g, instance).Explain(applications, from, to));
  return found;
}

}  // namespace tenon::egraph
