// GraphProof: why two whole graphs compute the same, as applications of rules.
//
// A derivation (core/rules/derivation.h) rewrites one term, and where a graph shares parts its
// steps multiply. A proof for graphs names each application once. It is checked by congruence
// closure over the terms that it names, with nothing but its steps; nobody has to believe the
// e-graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/egraph/egraph.h"
#include "core/egraph/rule_set.h"
#include "core/egraph/saturate.h"

namespace tenon::egraph {

// A rule at concrete sizes: its sides are equal there, output by output.
struct ProofStep {
  std::int32_t rule = 0;              // Its number.
  bool forward = true;                // It was matched by its source.
  std::vector<std::int32_t> outputs;  // Those of the rule that the proof needs, ascending.
  std::vector<std::int64_t> values;   // By symbol of the rule.
  std::vector<graph::NodeId> inputs;  // By input of the rule: terms; kNoNode for one of no use.
  std::vector<graph::NodeId> matched, made;  // By output listed: the two sides, as terms.
};

struct GraphProof {
  graph::Graph graph;                   // Holds all terms.
  std::vector<graph::NodeId> from, to;  // from[k] equals to[k].
  std::vector<ProofStep> steps;         // In the order in which they were found.
};

// Why the outputs of `from` equal those of `to`, a graph over the same inputs. `applications` are
// all that made `g` of the nodes of `from`; its operands are kept. Steps that are of no use are
// left out. Internal: the applications do not show it.
StatusOr<GraphProof> ProveGraph(const RuleSet& rules, const EGraph& g,
                                std::span<const Application> applications, const graph::Graph& from,
                                const graph::Graph& to);

// FailedPrecondition when a step is not what its rule allows (sizes, conditions), or the steps do
// not make the outputs equal. `commutative`: exchanged operands of commutative operators are equal
// without a rule.
Status CheckProof(const GraphProof& proof, const RuleSet& rules, bool commutative);

}  // namespace tenon::egraph
