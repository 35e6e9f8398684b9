// Operation: what a measured device is asked the price of: an operator at the types of its
// operands, without the graph around it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::optimizer {

struct Operand {
  graph::Extents extents;
  bool weight = false;  // Known before run time, so a device may have packed it to its liking.
  int same_as = -1;     // The first operand that is the same tensor, or -1.
};

// A value type. All tensors are float32, all extents known, at least 1.
struct Operation {
  ops::Operator op;
  std::vector<Operand> operands;
  graph::Extents output;
};

// Node `id` of `g` as an operation. Nothing for inputs, opaque operators, sizes that only run time
// knows, and element types other than float32: these are not measured.
std::optional<Operation> OperationOf(const graph::Graph& g, graph::NodeId id);

// The operation as one line of ASCII, its identity in caches (docs/formats/costs.md):
// "Conv(pads=[1,1,1,1]) f32[1,64,56,56] f32w[64,64,3,3] -> f32[1,64,56,56]".
std::string TextOf(const Operation& operation);

// Reshape: only the type changes, no element moves.
bool IsFree(const ops::Operator& op);

// Bytes of the operands, each tensor once, and of the output.
double BytesOf(const Operation& operation);

}  // namespace tenon::optimizer
