// Exact coefficients of the normal form.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace tenon::nf {

// A fraction in lowest terms of checked 64-bit integers, the denominator positive. Arithmetic that
// does not fit throws Unsupported: no coefficient is ever wrong. Immutable value type.
class Rational {
 public:
  Rational(std::int64_t integer = 0) : numerator_(integer) {}  // NOLINT: an integer is a fraction.
  Rational(std::int64_t numerator, std::int64_t denominator);  // The denominator is not 0.

  // Exactly the number that a finite double is, if it is a small fraction: numerator below 2^32,
  // denominator at most 2^30.
  static std::optional<Rational> FromDouble(double value);

  std::int64_t numerator() const { return numerator_; }
  std::int64_t denominator() const { return denominator_; }
  bool is_zero() const { return numerator_ == 0; }
  int sign() const { return (numerator_ > 0) - (numerator_ < 0); }
  Rational Inverse() const;  // Of a number that is not 0.
  Rational Abs() const { return sign() < 0 ? -*this : *this; }
  std::string Print() const;

  Rational operator-() const;
  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend bool operator==(const Rational&, const Rational&) = default;
  // Some total order; not the numeric one.
  friend auto operator<=>(const Rational&, const Rational&) = default;

 private:
  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

}  // namespace tenon::nf
