// Rules with several outputs, made by joining rules with one.
//
// Concat(MatMul(a, b), MatMul(a, c), axis=1) = MatMul(a, Concat(b, c, axis=1)) says as well that
// two products of one matrix are the two parts of one product:
//   MatMul(a, b), MatMul(a, c)  =>  the slices of MatMul(a, Concat(b, c, axis=1)).
// That is what merges the projections of attention or two convolutions of one image.
#pragma once

#include <vector>

#include "core/rules/rule.h"

namespace tenon::rules {

// The joins of a rule with one output, from each side that is a Concat of two or more operators
// whose replacement has fewer reductions (products, convolutions, pools, ..) than the parts have
// together: those are worth having. In the order source, target; canonical, one way, without names
// and unproved.
std::vector<Rule> Join(const Rule& rule);

}  // namespace tenon::rules
