// Engine: fast evaluation of one operator in double precision, for tensors of real networks. The
// operators' definitions are core/ops; this is a second engine, kept equal to them by the
// conformance test.
#pragma once

#include <span>

#include "core/base/status.h"
#include "core/eval/tensor.h"
#include "core/graph/graph.h"

namespace tenon::optimizer {

using Values = eval::Tensor<double>;

// `op` fits the operands, and its result has the extents `out` (both as in a checked, concrete
// graph). InvalidArgument: the operator is opaque. Softmax subtracts the maximum first, so it does
// not overflow where the definition would; otherwise sums may only differ in their order.
StatusOr<Values> Apply(const ops::Operator& op, std::span<const Values* const> operands,
                       const graph::Extents& out);

}  // namespace tenon::optimizer
