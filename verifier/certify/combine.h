// Linear combinations of facts: an exact simplex over the rationals.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/poly.h"

namespace tenon::certify {

// A value of a product of symbols, rounded down, and whether it was a whole number.
struct Coordinate {
  base::Monomial monomial{};
  std::int64_t floor = 0;
  bool whole = true;
};

struct Combined {
  // Positive multipliers by ascending fact: their sum is a positive multiple of the target.
  std::optional<std::vector<std::pair<std::size_t, std::int64_t>>> multipliers;
  // Without them and with the target -1: values at which all facts hold, each product of symbols
  // taken for a number of its own. Empty when there are no such multipliers for another reason: a
  // number that left 128 bits, or the multipliers 62.
  std::vector<Coordinate> point;
};

// Multipliers that make `target` out of `facts`, if there are any.
Combined Combine(std::span<const base::Poly> facts, const base::Poly& target);

}  // namespace tenon::certify
