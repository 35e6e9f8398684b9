// The same rule one rank higher: an enumeration of matrices finds rules about matrices, and models
// have batches of them.
#pragma once

#include <optional>

#include "core/rules/rule.h"

namespace tenon::rules {

// The rule with one more leading axis, of a new size, on the inputs that lie on the way from an
// output down left operands of MatMul and all operands of everything else: activations get the
// axis, weights that they are multiplied by do not. Axes and permutations of what depends on those
// inputs are shifted. Canonical, without a name, conditions found anew; unproved.
//
// Nothing when the rule has no MatMul, an operator that has fixed axes (convolutions, reshapes, ..)
// would get the axis, or the outcome does not fit or looks false on random instances.
std::optional<Rule> OneRankHigher(const Rule& rule);

}  // namespace tenon::rules
