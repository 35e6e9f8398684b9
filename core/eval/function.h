// The functions of core/ops/domain.h in doubles.
#pragma once

#include "core/ops/domain.h"

namespace tenon::eval {

// NaN where f has no value; the relu of NaN is NaN.
double InDoubles(ops::Fn f, double x);

}  // namespace tenon::eval
