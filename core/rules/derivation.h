// Derivations: how a term becomes another one, one application of a rule after the other.
//
// Whoever found a derivation (core/egraph/explain.h) need not be trusted: Replay takes each step on
// the terms themselves, with nothing but the rule, the sizes and the operands that the step names.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"

namespace tenon::rules {

struct DerivationStep {
  std::int32_t rule = 0;              // In the list that the derivation refers to.
  bool forward = true;                // From the rule's source to its target.
  std::int32_t output = 0;            // Which output of the rule.
  std::vector<std::int64_t> values;   // By symbol of the rule.
  std::vector<graph::NodeId> inputs;  // By input of the rule: a term; kNoNode for one of no use.
  // The place of the subterm that is replaced: operand numbers, from the root down.
  std::vector<std::int32_t> place;
};

// A value type. All tensors have concrete extents.
struct Derivation {
  graph::Graph graph;  // Holds the two terms and those that steps name.
  graph::NodeId from = graph::kNoNode, to = graph::kNoNode;
  std::vector<DerivationStep> steps;
};

// What the steps make of the first term.
struct Replayed {
  graph::Graph graph;                 // The derivation's, and the terms on the way.
  std::vector<graph::NodeId> states;  // The whole term before the first step and after each.
};

// Takes every step: FailedPrecondition names the first that is not what its rule allows, or says
// that the last term is not the one that was promised. `rules` are those that the steps number.
StatusOr<Replayed> Replay(const Derivation& derivation,
                          std::span<const std::shared_ptr<const Rule>> rules);

// Why the rule says nothing at these sizes and inputs (terms of `g`): a condition, a shape. Empty
// if it does.
std::string Misfit(const Rule& rule, std::span<const std::int64_t> values,
                   std::span<const graph::NodeId> inputs, const graph::Graph& g);

// The term of `root` at concrete sizes, built in `to`: symbols have `values`, inputs are `inputs`,
// constants have the inputs' type.
// InvalidArgument when it does not fit.
StatusOr<graph::NodeId> BuildAt(const Rule& rule, graph::NodeId root,
                                std::span<const std::int64_t> values,
                                std::span<const graph::NodeId> inputs, graph::Graph& to);

// `term` with what stands at `place` replaced by `part`. InvalidArgument when it does not fit.
StatusOr<graph::NodeId> Replaced(graph::Graph& g, graph::NodeId term,
                                 std::span<const std::int32_t> place, graph::NodeId part);

// "add_commutes", "add_commutes (backwards)".
std::string StepName(std::string_view rule, bool forward);

}  // namespace tenon::rules
