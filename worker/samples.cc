#include "worker/samples.h"

#include <array>
#include <cmath>

#include "core/base/fingerprint.h"
#include "core/eval/exact.h"

namespace tenon::worker {
namespace {

enum class Scale : std::uint8_t { kOne, kByEntry, kByInput };

struct Style {
  Scale scale = Scale::kOne;
  std::uint64_t negative_in_16 = 8;  // How many of 16 entries are negative.
};

void FillLane(InputValue& value, std::size_t lane, Style style, std::uint64_t seed) {
  base::SplitMix64 random(seed);
  const auto exponent = [&] { return static_cast<int>(random.Below(17)) - 8; };
  const int common = exponent();
  for (std::size_t k = lane; k < value.residue.size(); k += kLanes) {
    // A numerator up to 1.5 times the denominator, never 0; both are exact as doubles.
    const double magnitude = static_cast<double>(1 + random.Below(98304)) / 65536;
    const bool negative = random.Below(16) < style.negative_in_16;
    const int by_entry = exponent();
    const int e = style.scale == Scale::kOne       ? 0
                  : style.scale == Scale::kByEntry ? by_entry
                                                   : common;
    const double v = std::ldexp(negative ? -magnitude : magnitude, e);
    const eval::Exact exact = eval::FromDouble(v);
    value.residue[k] = exact.residue;
    value.approx[k] = exact.approx;
  }
}

// style(input, lane) for each, from seeds that differ.
template <class StyleOf>
std::vector<InputValue> Samples(const graph::Universe& universe, std::uint64_t seed,
                                StyleOf style) {
  std::vector<InputValue> out;
  for (std::size_t k = 0; k < universe.inputs.size(); ++k) {
    const auto count = static_cast<std::size_t>(graph::ElementCount(universe.inputs[k].extents));
    InputValue value;
    value.residue.resize(count * kLanes);
    value.approx.resize(count * kLanes);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      FillLane(value, lane, style(k, lane), base::Mix64(base::Mix64(seed + k) + lane));
    }
    out.push_back(std::move(value));
  }
  return out;
}

}  // namespace

std::vector<InputValue> MainSamples(const graph::Universe& universe, std::uint64_t seed) {
  constexpr std::array<Scale, kLanes> kScales = {Scale::kOne, Scale::kByEntry, Scale::kOne,
                                                 Scale::kByInput};
  return Samples(universe, base::Mix64(seed ^ 0x6d61696e), [&](std::size_t, std::size_t lane) {
    return Style{kScales[lane], 8};
  });
}

std::vector<InputValue> BiasedSamples(const graph::Universe& universe, std::uint64_t seed,
                                      int round) {
  const std::uint64_t own = base::Mix64(seed ^ 0x62696173) + static_cast<std::uint64_t>(round);
  base::SplitMix64 random(base::Mix64(own));
  constexpr std::array<std::uint64_t, 8> kNegative = {0, 1, 4, 8, 8, 12, 15, 16};
  return Samples(universe, own, [&](std::size_t, std::size_t) {
    const Scale scale = static_cast<Scale>(random.Below(3));
    return Style{scale, kNegative[random.Below(kNegative.size())]};
  });
}

}  // namespace tenon::worker
