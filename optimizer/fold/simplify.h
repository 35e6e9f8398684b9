// Simplify: what is the same bit for bit and never worse, without search or rules.
#pragma once

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace tenon::optimizer {

// The same outputs from fewer operators: equal nodes become one, what no output depends on goes,
// and movements that undo each other or do nothing are left out: identity and successive
// Transposes, Reshapes of Reshapes, Slices of everything and of Slices, Pads by nothing, Concats of
// the parts of one Split and the reverse, double Neg and double Relu. Every rewrite is exact in
// floating point (and for NaN, infinities and signed zeros), and no operator is added. The inputs
// keep their order and kinds; weights that nobody uses are left out. Idempotent.
StatusOr<graph::Graph> Simplify(const graph::Graph& graph);

}  // namespace tenon::optimizer
