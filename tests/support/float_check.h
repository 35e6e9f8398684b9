// Whether a rule keeps in floating point what its float class promises (docs/float-classes.md).
#pragma once

#include <string>

#include "core/rules/rule.h"

namespace tenon::testing {

struct FloatCheck {
  int instances = 0;  // Sizes and inputs at which the promise was tested.
  double worst_error =
      0;               // kFinite: the greatest difference, in units of the bound that is stated.
  std::string broken;  // Where it does not hold, and how; empty if it does.
};

// Evaluates both sides in doubles at random sizes.
//  kExact: infinities, NaN, signed zeros, subnormals and the largest numbers are among the inputs;
//    the outputs are the same bits (a NaN is a NaN).
//  kFinite: signed zeros and subnormals are among the inputs. Where everything that is computed is
//    finite, outputs differ by at most 8 N u max(1, M)^2, where u is 2^-53, N the number of
//    elements of the largest tensor and M the greatest magnitude of any tensor on the way.
//  kDomain: promises nothing, and is not tested.
FloatCheck CheckFloats(const rules::Rule& rule, rules::FloatClass float_class, int instances);

}  // namespace tenon::testing
