// Corrections: a program that is equal on part of the output, made equal on all of it, with
// ordinary operators. What is made here is a rule to be proved; nothing is claimed of it.
#pragma once

#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/partial/regions.h"
#include "verifier/partial/sizes.h"

namespace tenon::partial {

struct Corrected {
  rules::Rule rule;  // The source as it was, the corrected target, and what is assumed in `where`.
  // How many elements of the output, over the symbols of rule.graph: all, and those that the
  // original program computes anew.
  Poly elements, recomputed;
  double share = 0;  // recomputed / elements at typical sizes.
};

// Adds what `sizes` assumes to the conditions of `rule`.
void Assume(rules::Rule& rule, Sizes& sizes);

// Recomputes: intervals of the output in which all regions are equal come from the target, the rest
// from the source, restricted to it. Along several axes the output is cut one axis after the
// other, in the order that recomputes least and then has fewest parts.
//
// FailedPrecondition: no region is equal, or all are; nothing is left of the target; or the source
// cannot be restricted (verifier/partial/restrict.h).
StatusOr<Corrected> Recompute(const rules::Rule& pair, const Regions& regions, Sizes& sizes);

}  // namespace tenon::partial
