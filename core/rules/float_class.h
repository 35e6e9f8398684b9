// What floating point may do to a rule that is true over the reals.
//
// Every element of both sides is evaluated on several random shapes in a reading that remembers how
// a kernel would compute it: which input elements it uses, which arithmetic in which order, which
// functions of which arguments.
//  exact:  both sides are the same computation and no sum is in it (kernels add up in any order),
//  so
//          data was only moved: the bits are the same.
//  domain: the two sides use different input elements, apply a function (exp, reciprocal, sigmoid,
//          ..) to different arguments, or compute with something on one side what the other side
//          just copies (x + 0, x times the identity matrix): an infinity, a NaN or the sign of a
//          zero may appear or vanish. Or they take a reciprocal or a root of a sum that may cancel
//          and that they add up differently.
//  finite: everything else; equal up to rounding while nothing overflows and nothing is NaN.
#pragma once

#include <cstdint>

#include "core/rules/rule.h"

namespace tenon::rules {

// Deterministic. kDomain when no instance of the rule is found: nothing is known then.
FloatClass FloatClassOf(const Rule& rule, std::uint64_t seed = 1);

}  // namespace tenon::rules
