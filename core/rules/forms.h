// Forms: the same rule of tensors with another axis more, or with one less.
//
// An enumeration of matrices finds rules about matrices, and models have batches of them. What a
// rule says of elements side by side it says of rows of them, wherever the new axis lies: so
// Relu(Concat(a, b, axis=1)) and its ten forms of rank 1 to 4, one for each axis, are one *family*.
#pragma once

#include <vector>

#include "core/rules/rule.h"

namespace tenon::rules {

inline constexpr int kFormRankMax = 4;

// Rules of the family of `rule` that differ from it: the axis of a new size is added anywhere that
// all operators leave alone, or one is taken away, again and again, up to tensors of `rank_max`
// axes. The axis is added on all inputs that are large enough; or, for products, on the inputs that
// lie on the way from an output down left operands of MatMul and all operands of everything else
// (activations get it, the weights that they are multiplied by do not). Attributes that name axes
// follow.
//
// Canonical, without names, conditions found anew, in the order of canonical bytes; unproved, but
// tried on random instances. Empty when some operator fixes what its axes are (convolutions,
// reshapes, ..). Some ms for each form.
std::vector<Rule> Forms(const Rule& rule, int rank_max = kFormRankMax);

}  // namespace tenon::rules
