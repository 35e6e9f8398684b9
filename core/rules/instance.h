// Random concrete instances of a rule: the cheap look whether it can be true, before it is proved.
// Lifting uses it to choose among forms; it decides nothing that is published.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/poly.h"
#include "core/eval/exact.h"
#include "core/eval/tensor.h"
#include "core/rules/rule.h"

namespace tenon::rules {

// A small deterministic source of randomness, the same on every machine. Thread-compatible.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  // Uniform in [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high);

 private:
  std::uint64_t state_;
};

// Values for all symbols of a rule at which its conditions and the requirements of both sides hold:
// dims from 1 to `dim_max`, attributes from 0 to 3. Nothing when `tries` random choices fail.
std::optional<std::vector<std::int64_t>> RandomValues(const Rule& rule, Dice& dice, int dim_max = 5,
                                                      int tries = 400);

// Fractions of both signs; some tensors are mostly positive, mostly negative, large or small, since
// maxima look at signs.
eval::Tensor<eval::Exact> RandomTensor(const graph::Extents& extents, Dice& dice);

enum class Comparison : std::uint8_t {
  kEqual,
  kDifferent,
  kUnusable,  // The rule does not fit there, or a reciprocal of 0 came up each time.
};
// Evaluates both sides at these values of the symbols, on `samples` random inputs.
Comparison CompareAt(const Rule& rule, std::span<const std::int64_t> values, Dice& dice,
                     int samples = 1);

// Whether the sides agree on `trials` random instances and at `base`, if given. False also when no
// instance is found.
bool LooksTrue(const Rule& rule, Dice& dice, int trials,
               const std::vector<std::int64_t>* base = nullptr);

}  // namespace tenon::rules
