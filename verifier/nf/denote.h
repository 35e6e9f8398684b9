// Denotation: the operator structs read as normal forms.
#pragma once

#include "core/graph/graph.h"
#include "verifier/nf/index_plan.h"
#include "verifier/nf/session.h"
#include "verifier/nf/term.h"

namespace tenon::nf {

// Enters the inputs of `g` as the first heads; call it once, before anything else.
void AddInputs(Session& s, const graph::Graph& g);

// The element of `node` at `at`, a position inside its shape where `context` holds. Sums and
// maxima take their bound variables from `plan`. Throws Unsupported, and Replan when the plan was
// refined. Not normalised. Common subgraphs are read once for each place that uses them.
Nf Denote(Session& s, const graph::Graph& g, graph::NodeId node, const ops::Short<Poly>& at,
          const Guards& context, IndexPlan& plan, IndexPlan::Side side);

}  // namespace tenon::nf
