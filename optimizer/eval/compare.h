// Compare: whether an optimized model computes what the original does, by evaluating both.
//
// Opaque nodes cannot be evaluated, so they are cuts: their outputs are random tensors that depend
// on the ONNX node and the number of the output only, the same in both models, and what goes into
// them is compared as if it were an output. (If what goes in is equal, what comes out is, too.)
// Together with the outputs that covers the whole of a model.
//
// What both models compute in the same way (same operators on the same values) is equal without
// being evaluated; only the rest is.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include "core/base/status.h"
#include "optimizer/eval/engine.h"
#include "optimizer/onnx/model.h"

namespace tenon::optimizer {

struct CompareOptions {
  std::uint64_t seed = 1;
  // When it is over, what was not compared by then counts as skipped.
  std::chrono::milliseconds budget = std::chrono::minutes(1);
  std::stop_token stop;
};

struct Comparison {
  // The largest RelativeError over all compared values; infinite if a value that cannot be
  // evaluated (an integer, say) is another one in the optimized model.
  double max_relative_error = 0;
  std::string worst;  // Which value that is: "output 'y'", "operand 1 of node 'n' (Gather)".

  // Values: the model's outputs and the operands of opaque nodes.
  int values = 0;
  int identical = 0;  // Computed in the same way in both.
  int compared = 0;
  int skipped = 0;  // The budget was over; values = identical + compared + skipped.
  int outputs = 0;
  int outputs_covered = 0;  // Of the model's outputs, those that are not skipped.
  // Operators of the optimized model that a covered value depends on, and all of them.
  int nodes = 0;
  int nodes_covered = 0;
};

// The largest |a - b| / max(|a|, |b|, r) over the elements, r the root of the mean square of the
// finite elements of `a`: elements that are small beside the others are measured by the others'
// scale, because rounding is. 0 where both are 0, NaN, or the same infinity; infinite where only
// one of them is. The extents are equal.
double RelativeError(const Values& a, const Values& b);

// Both models come from the same file: `optimized` is a copy of `original` with another graph, or
// was imported from what Export made of one. Symbolic sizes are tried at small numbers.
// InvalidArgument: the models differ in their inputs, outputs or opaque nodes. DataLoss: external
// data cannot be read.
StatusOr<Comparison> Compare(const Model& original, const Model& optimized,
                             const CompareOptions& options = {});

// `count` numbers of mean 0 and variance 1 (bounded, near normal), the same on every machine.
std::vector<double> RandomNumbers(std::uint64_t seed, std::int64_t count);

}  // namespace tenon::optimizer
