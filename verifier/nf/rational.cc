#include "verifier/nf/rational.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

__extension__ using Wide = __int128;

// The lowest terms of numerator / denominator, both from products of 64-bit integers.
void Reduce(Wide numerator, Wide denominator, std::int64_t& n, std::int64_t& d) {
  Wide a = numerator < 0 ? -numerator : numerator;
  Wide b = denominator < 0 ? -denominator : denominator;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  if (denominator < 0) a = -a;
  numerator /= a;
  denominator /= a;
  const Wide limit = std::numeric_limits<std::int64_t>::max();
  if (numerator > limit || numerator < -limit || denominator > limit) {
    throw Unsupported("a coefficient overflows");
  }
  n = static_cast<std::int64_t>(numerator);
  d = static_cast<std::int64_t>(denominator);
}

}  // namespace

Rational::Rational(std::int64_t numerator, std::int64_t denominator) {
  CHECK(denominator != 0);
  Reduce(numerator, denominator, numerator_, denominator_);
}

std::optional<Rational> Rational::FromDouble(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  std::int64_t denominator = 1;
  while (value != std::floor(value)) {
    if (denominator >= std::int64_t{1} << 30) return std::nullopt;
    value *= 2;
    denominator *= 2;
  }
  if (std::fabs(value) >= 4294967296.0) return std::nullopt;
  return Rational(static_cast<std::int64_t>(value), denominator);
}

Rational Rational::Inverse() const { return Rational(denominator_, numerator_); }

std::string Rational::Print() const {
  return denominator_ == 1 ? fmt::format("{}", numerator_)
                           : fmt::format("{}/{}", numerator_, denominator_);
}

Rational Rational::operator-() const {
  Rational r;
  Reduce(-Wide(numerator_), denominator_, r.numerator_, r.denominator_);
  return r;
}

Rational operator+(const Rational& a, const Rational& b) {
  // Each product is below 2^126, so the sum fits.
  Rational r;
  Reduce(Wide(a.numerator_) * b.denominator_ + Wide(b.numerator_) * a.denominator_,
         Wide(a.denominator_) * b.denominator_, r.numerator_, r.denominator_);
  return r;
}

Rational operator*(const Rational& a, const Rational& b) {
  Rational r;
  Reduce(Wide(a.numerator_) * b.numerator_, Wide(a.denominator_) * b.denominator_, r.numerator_,
         r.denominator_);
  return r;
}

}  // namespace tenon::nf
