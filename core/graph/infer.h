// Shape inference: one reading of every operator's Infer over polynomials, for concrete graphs and
// for rules alike.
#pragma once

#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/graph/type.h"
#include "core/ops/operator.h"

namespace tenon::graph {

struct Inferred {
  Shape shape;
  // What the operator requires of sizes and constants did not decide; all must hold. Empty in a
  // concrete graph.
  std::vector<base::Condition> requirements;
};

// The output shape of `op` on operands of these shapes. `symbols` may grow (floor divisions).
// InvalidArgument names the operator and what it requires when the operands do not fit.
StatusOr<Inferred> InferShape(const ops::Operator& op, std::span<const Shape> operands,
                              base::Symbols& symbols);

}  // namespace tenon::graph
