// Evaluation at concrete sizes: the readings of the operator structs that compute elements. They
// are derived from the structs alone and independent of the prover's machinery. The definition, not
// a fast path: about 1e7..1e8 multiply-adds a second. Fast engines are compared with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/eval/exact.h"
#include "core/eval/tensor.h"
#include "core/graph/graph.h"

namespace tenon::eval {

// Applies one operator. InvalidArgument when the operands do not fit or the operator is opaque.
StatusOr<Tensor<double>> Apply(const ops::Operator& op,
                               std::span<const Tensor<double>* const> operands);
// `key` chooses the hashes that stand for functions. FailedPrecondition when a reciprocal of 0 came
// up (take other inputs).
StatusOr<Tensor<Exact>> Apply(const ops::Operator& op,
                              std::span<const Tensor<Exact>* const> operands, std::uint64_t key);

// Evaluates the outputs of a concrete graph; inputs[k] is the value of input k. Errors as in Apply,
// with the operator named.
StatusOr<std::vector<Tensor<double>>> Evaluate(const graph::Graph& g,
                                               std::span<const graph::NodeId> roots,
                                               std::span<const Tensor<double>> inputs);
StatusOr<std::vector<Tensor<Exact>>> Evaluate(const graph::Graph& g,
                                              std::span<const graph::NodeId> roots,
                                              std::span<const Tensor<Exact>> inputs,
                                              std::uint64_t key);

// What computing one operator takes, from the same structs. Padding counts as if it were computed.
struct Work {
  double flops = 0;  // Additions, products, quotients, maxima 1 each; a function 1 (Relu) or 8.
  double elements_in = 0;  // Of the operands, each counted once.
  double elements_out = 0;
};
// `op` fits the operands (a node of a checked graph) and is not opaque.
Work WorkOf(const ops::Operator& op, std::span<const graph::Extents> operands,
            const graph::Extents& output);

}  // namespace tenon::eval
