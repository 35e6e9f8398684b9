// Which elements of its operands an output box of an operator reads: the reading of the operator
// structs over index intervals. What demand propagation and partial equivalence build on.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/graph/type.h"
#include "core/ops/operator.h"

namespace tenon::eval {

// A half-open box of indices, one interval an axis: begin[a] <= i[a] < end[a].
struct Box {
  graph::Extents begin;
  graph::Extents end;
  friend bool operator==(const Box&, const Box&) = default;
};

// For each operand a box that holds everything read for the elements of `output`; nothing when no
// element is read. The smallest one when the output box is a single element and the access is
// affine with one term an axis; otherwise it may be larger, never smaller. `op` fits the operands,
// `output` is a non-empty box inside its output; CHECKs that it is not opaque.
std::vector<std::optional<Box>> BoxesRead(const ops::Operator& op,
                                          std::span<const graph::Extents> operands,
                                          const Box& output);

}  // namespace tenon::eval
