// Fingerprints of values: equal values have equal ones; different values have equal ones by a
// chance of about 2^-120.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/fingerprint.h"
#include "core/graph/type.h"
#include "worker/kernels.h"

namespace tenon::worker {

using base::Fingerprint;

// Immutable; thread-safe.
class Hasher {
 public:
  // For values of up to `elements` elements. Two hashers of one seed agree.
  Hasher(std::uint64_t seed, std::int64_t elements);

  // Covers the extents and all residues. `value` has ElementCount(extents) elements.
  Fingerprint Hash(const graph::Extents& extents, Value value) const;

 private:
  std::vector<std::uint64_t> keys_;  // Two for each residue.
};

// The fingerprint of several outputs, whatever their order.
Fingerprint CombineOutputs(std::span<const Fingerprint> outputs);
// The fingerprint of a value at more samples: `next` after `so_far`.
Fingerprint Chain(const Fingerprint& so_far, const Fingerprint& next);

}  // namespace tenon::worker
