// Fold: what depends on weights only is computed once, here, and becomes a weight.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "optimizer/onnx/model.h"

namespace tenon::optimizer {

struct FoldOptions {
  // A result may have this many times the elements of the weights it is made from, and in any case
  // `always_elements`: products and broadcasts of small weights would otherwise blow the model up.
  double growth = 2;
  std::int64_t always_elements = 1 << 16;
};

struct FoldSummary {
  int folded = 0;             // Operators that are gone.
  int weights = 0;            // Weights that were made for them.
  std::int64_t elements = 0;  // Their elements.
  int left = 0;  // Operators on weights only that stay, because the result is too large.
};

// Computed in double precision and rounded once to the tensor's type, so a folded model differs
// from the original as much as a better rounding does. Constant operators (Fill, Eye, ..) that
// nothing but activations use stay: the exporter writes them as initializers. The weights of a
// model whose graph is symbolic are folded where their own sizes are numbers. DataLoss: external
// data cannot be read; the model is then as before.
StatusOr<FoldSummary> FoldWeights(Model& model, const FoldOptions& options = {});

}  // namespace tenon::optimizer
