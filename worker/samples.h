// The inputs at which graphs are evaluated.
//
// Inputs are fractions: integers have accidents of their own (x + x*x >= 0 for all of them) that
// would make unequal functions look equal. Entries near 1 as well as large and small ones, since
// with large ones only a sum has the sign of its largest term, always. Sign biases, since with 16
// fair signs "all negative" never comes up.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/universe.h"
#include "worker/kernels.h"

namespace tenon::worker {

// One input at kLanes samples.
struct InputValue {
  std::vector<std::uint64_t> residue;
  std::vector<double> approx;
  Value view() const { return {residue.data(), approx.data()}; }
};

// The samples that fingerprints are made of: fair signs, scales from 2^-8 to 2^8.
std::vector<InputValue> MainSamples(const graph::Universe& universe, std::uint64_t seed);

// Samples number round * kLanes and following of those that split classes: each input of each
// sample has its own scale and its own share of negative entries, none and all included.
std::vector<InputValue> BiasedSamples(const graph::Universe& universe, std::uint64_t seed,
                                      int round);

}  // namespace tenon::worker
