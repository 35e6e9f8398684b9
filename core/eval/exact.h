// Exact numbers for fingerprints and the random tester: integers mod p beside a double that decides
// signs.
//
// Polynomial identities over the rationals hold mod p, and one that fails there fails by chance
// with probability at most degree / p (Schwartz-Zippel; design: enumeration and tester). Relu and
// maxima look at the sign of the double, except that a residue of 0 is the number 0. Functions
// without an exact meaning (sigmoid, tanh, exp, sqrt, erf) are keyed hashes of the residue: equal
// arguments give equal values, and nothing else is known of them.
#pragma once

#include <cstdint>

namespace tenon::eval {

// 2^61 - 1.
inline constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

struct Exact {
  std::uint64_t residue = 0;  // In [0, kPrime).
  double approx = 0;          // The real number it stands for, rounded.
  friend bool operator==(const Exact& a, const Exact& b) { return a.residue == b.residue; }
};

std::uint64_t AddMod(std::uint64_t a, std::uint64_t b);
std::uint64_t MulMod(std::uint64_t a, std::uint64_t b);
std::uint64_t InverseMod(std::uint64_t a);  // `a` is not 0.

Exact FromInteger(std::int64_t v);
// numerator / denominator; the denominator is positive and below kPrime.
Exact FromFraction(std::int64_t numerator, std::int64_t denominator);
// Exactly the (dyadic) rational that a finite double is.
Exact FromDouble(double v);

}  // namespace tenon::eval
