// Correction by a gap: where a program puts images side by side, windows read across the seam.
// Zeros between them are what each image's own padding would have been, so with enough of them
// nothing has to be computed anew.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/partial/correct.h"
#include "verifier/partial/regions.h"
#include "verifier/partial/sizes.h"

namespace tenon::partial {

struct Gap {
  base::Symbol along = 0;  // The dim that grows: the extent of images before they are joined.
  Poly zeros;              // By how much.
};

// Gaps worth trying, small ones first, at most 6: as many zeros as some regions are long.
std::vector<Gap> GapsOf(const rules::Rule& pair, const Regions& regions, Sizes& sizes);

// The target at `gap.along` + `gap.zeros`, on inputs that end in so many zeros along it, and what
// is computed for them cut off. Nothing is recomputed; what is paid are the zeros.
//
// FailedPrecondition: an input or the output does not grow by the gap once (the output: a constant
// number of times).
StatusOr<Corrected> WithGap(const rules::Rule& pair, const Gap& gap);

}  // namespace tenon::partial
