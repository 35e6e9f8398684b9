// Explanations: the steps by which an e-graph found two terms equal.
//
// An e-graph forgets how it got where it is: its nodes have classes for operands, and many terms
// share them. What is kept during saturation are the applications of rules, in their order. When an
// explanation is wanted, they are made once more on terms (exact ones, without classes), with a
// congruence closure that keeps a proof forest (Nieuwenhuis, Oliveras: Proof-Producing Congruence
// Closure, RTA 2005, section 3). The path between the two terms in the forest is the derivation.
//
// Nobody has to believe this: rules::Replay takes the steps one by one.
#pragma once

#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/egraph/rule_set.h"
#include "core/egraph/saturate.h"
#include "core/rules/derivation.h"

namespace tenon::egraph {

// Longer derivations are not written down: where terms share parts, steps can multiply.
inline constexpr std::size_t kDerivationStepsMax = 2'000;

// Saturates an e-graph that holds `instance` (concrete; a node for each of its outputs) with the
// rules until `from` and `to`, two of its nodes, are equal. Nothing when that does not happen
// within the limits. The steps' rules are numbers in `rules`. ResourceExhausted: equal, but by more
// than kDerivationStepsMax steps. Deterministic.
StatusOr<std::optional<rules::Derivation>> Derive(const RuleSet& rules,
                                                  const graph::Graph& instance, graph::NodeId from,
                                                  graph::NodeId to, const SaturationLimits& limits);

}  // namespace tenon::egraph
