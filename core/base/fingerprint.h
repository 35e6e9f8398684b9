// Fingerprint: 128 bits that stand for a function, as far as samples can tell.
#pragma once

#include <compare>
#include <cstdint>

namespace tenon::base {

struct Fingerprint {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// A bijection of 64-bit numbers that spreads every bit over all of them.
constexpr std::uint64_t Mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The numbers of a seed, one after another, the same on every machine.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15ull); }
  // In [0, n), n at least 1; the bias is below n / 2^64.
  std::uint64_t Below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace tenon::base
