// Integer arithmetic that C++ lacks.
#pragma once

#include <cstdint>

namespace tenon::base {

// The greatest integer not above n / d, for d other than 0 (C++ rounds towards 0).
constexpr std::int64_t FloorDivide(std::int64_t n, std::int64_t d) {
  return n / d - (n % d != 0 && (n % d < 0) != (d < 0) ? 1 : 0);
}

}  // namespace tenon::base
