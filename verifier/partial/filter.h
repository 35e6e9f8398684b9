// A fast filter before proofs: a few positions of each region, at one choice of sizes, mod a prime.
//
// The positions are a corner of the region and its neighbour along each axis, m + 1 of them for m
// axes (PET, Wang et al., OSDI 2021, theorem 1). That theorem is false for sums of terms with
// different index maps, so a region that passes has still to be proved; one that does not is
// unequal.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/eval/exact.h"
#include "core/rules/rule.h"
#include "verifier/partial/regions.h"
#include "verifier/partial/sizes.h"

namespace tenon::partial {

// FailedPrecondition: a program is no polynomial, or an element takes too long.
StatusOr<Filtered> Filter(const rules::Rule& pair, const Regions& regions, Sizes& sizes,
                          const std::vector<std::int64_t>& at, std::uint64_t seed,
                          std::uint64_t prime = eval::kPrime);

}  // namespace tenon::partial
