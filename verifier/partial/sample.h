// Where two programs differ at given sizes, by evaluation with random numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"

namespace tenon::partial {

struct Sample {
  graph::Extents extents;     // Of the output.
  std::vector<bool> differs;  // One an element, in row-major order.
};

// Evaluates both sides of a rule with one output, at sizes by symbol, in numbers mod 2^61 - 1; an
// element that differs there is different. InvalidArgument: the sizes are not allowed;
// ResourceExhausted: they take more than 5e7 operations; FailedPrecondition: 1 / 0 came up.
StatusOr<Sample> SampleAt(const rules::Rule& pair, const std::vector<std::int64_t>& sizes,
                          std::uint64_t seed);

// The position with a row-major number.
graph::Extents PositionOf(std::int64_t number, const graph::Extents& extents);

}  // namespace tenon::partial
