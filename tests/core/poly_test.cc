// Polynomials: ring laws, division, substitution and conditions, each against plain integers.
#include "core/base/poly.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::base {
namespace {

class PolyTest : public ::testing::Test {
 protected:
  Symbols symbols;
  Symbol a = symbols.Add("a", SymbolKind::kDim);
  Symbol b = symbols.Add("b", SymbolKind::kDim);
  Symbol c = symbols.Add("c", SymbolKind::kAttr);
  std::mt19937 rng{7};

  std::int64_t Random(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(rng);
  }
  // A small polynomial, sometimes with a division in it.
  Poly RandomPoly(int depth = 2) {
    Poly p(Random(-3, 3));
    for (Symbol s : {a, b, c}) {
      if (Random(0, 1) == 1) p += Poly(Random(-4, 4)) * Poly::Var(s);
    }
    if (depth > 0 && Random(0, 3) == 0) p += RandomPoly(depth - 1) * RandomPoly(depth - 1);
    if (depth > 0 && Random(0, 3) == 0) p += symbols.FloorDiv(RandomPoly(depth - 1), Random(1, 4));
    return p;
  }
  std::vector<std::int64_t> RandomValues() {
    std::vector<std::int64_t> v(symbols.size(), 0);
    for (Symbol s : {a, b, c}) v[s] = Random(-5, 9);
    return v;
  }
  std::int64_t At(const Poly& p, const std::vector<std::int64_t>& v) { return *symbols.Eval(p, v); }
};

std::int64_t Floor(std::int64_t n, std::int64_t d) {
  std::int64_t q = n / d;
  while (q * d > n) --q;
  while ((q + 1) * d <= n) ++q;
  return q;
}

TEST_F(PolyTest, ArithmeticAgreesWithIntegers) {
  for (int trial = 0; trial < 2000; ++trial) {
    const Poly p = RandomPoly(), q = RandomPoly();
    const std::int64_t k = Random(1, 5);
    const Poly quotient = symbols.FloorDiv(p, k), rest = symbols.Mod(p, k);
    const auto v = RandomValues();
    EXPECT_EQ(At(p + q, v), At(p, v) + At(q, v));
    EXPECT_EQ(At(p - q, v), At(p, v) - At(q, v));
    EXPECT_EQ(At(p * q, v), At(p, v) * At(q, v));
    EXPECT_EQ(At(quotient, v), Floor(At(p, v), k)) << symbols.Print(p) << " / " << k;
    EXPECT_GE(At(rest, v), 0);
    EXPECT_LT(At(rest, v), k);
    EXPECT_TRUE(p + q - q == p);
    EXPECT_TRUE((p + q) * p == p * p + q * p);
  }
}

TEST_F(PolyTest, SubstitutionCommutesWithEvaluation) {
  for (int trial = 0; trial < 1000; ++trial) {
    const Poly p = RandomPoly(), ra = RandomPoly(1), rb = RandomPoly(1);
    const Poly image = symbols.Substitute(p, {{a, ra}, {b, rb}});
    auto v = RandomValues();
    const std::int64_t after = At(image, v);
    const std::int64_t va = At(ra, v), vb = At(rb, v);
    v[a] = va;
    v[b] = vb;
    EXPECT_EQ(after, At(p, v)) << symbols.Print(p);
  }
}

TEST_F(PolyTest, EqualDivisionsAreOneSymbol) {
  const Poly n = Poly::Var(a) + 1;
  EXPECT_TRUE(symbols.FloorDiv(n, 2) == symbols.FloorDiv(Poly::Var(a) + 1, 2));
  EXPECT_TRUE(symbols.FloorDiv(Poly(2) * n, 2) == n);
  EXPECT_TRUE(symbols.FloorDiv(n + 4, 2) == symbols.FloorDiv(n, 2) + 2);
  EXPECT_TRUE(symbols.FloorDiv(n, Poly::Var(c)) == symbols.FloorDiv(n, Poly::Var(c)));
  EXPECT_TRUE(symbols.FloorDiv(n * Poly::Var(c), Poly::Var(c)) == n);
  EXPECT_FALSE(symbols.FloorDiv(n, 0).valid());
}

TEST_F(PolyTest, WhatASumDividesIsDivided) {
  const Poly va = Poly::Var(a), vb = Poly::Var(b), vc = Poly::Var(c);
  EXPECT_TRUE(symbols.FloorDiv(va * vc + vb * vc, va + vb) == vc);
  EXPECT_TRUE(symbols.FloorDiv(va * va - vb * vb, va - vb) == va + vb);
  EXPECT_FALSE(symbols.FloorDiv(va * vc + vb * vc + 1, va + vb) == vc);
  for (int trial = 0; trial < 500; ++trial) {
    const Poly divisor = va + Poly(Random(1, 3)) * vb + Random(0, 2), quotient = RandomPoly(0);
    EXPECT_TRUE(symbols.FloorDiv(quotient * divisor, divisor) == quotient)
        << symbols.Print(quotient) << " times " << symbols.Print(divisor);
  }
}

TEST_F(PolyTest, DivisionsWithinDivisionsAreOne) {
  const Poly n = Poly::Var(a) + 1, m = Poly::Var(b);
  EXPECT_TRUE(symbols.FloorDiv(symbols.FloorDiv(n, 2), 3) == symbols.FloorDiv(n, 6));
  EXPECT_TRUE(symbols.FloorDiv(symbols.FloorDiv(n, 2) + m, 3) == symbols.FloorDiv(n + m + m, 6));
  EXPECT_TRUE(symbols.FloorDiv(symbols.FloorDiv(symbols.FloorDiv(n, 2), 2), 2) ==
              symbols.FloorDiv(n, 8));
  // Not by a multiple of a division, and not where two meet.
  EXPECT_FALSE(symbols.FloorDiv(Poly(2) * symbols.FloorDiv(n, 3), 5) ==
               symbols.FloorDiv(Poly(2) * n, 15));
  std::vector<std::int64_t> values(symbols.size(), 0);
  for (std::int64_t x = -20; x <= 20; ++x) {
    for (std::int64_t y = -3; y <= 3; ++y) {
      values[a] = x;
      values[b] = y;
      const auto floor = [](std::int64_t p, std::int64_t q) { return p / q - (p % q < 0 ? 1 : 0); };
      const auto v = symbols.Eval(symbols.FloorDiv(symbols.FloorDiv(n, 2) + m, 3), values);
      EXPECT_EQ(v, floor(floor(x + 1, 2) + y, 3)) << x << " " << y;
    }
  }
}

TEST_F(PolyTest, OverflowAndHighDegreeAreContagious) {
  const Poly big(INT64_MAX);
  EXPECT_FALSE((big + 1).valid());
  EXPECT_FALSE((big * 2 - 5).valid());
  EXPECT_FALSE((-Poly(INT64_MIN)).valid());
  Poly power = 1;
  for (int k = 0; k < kDegreeMax; ++k) power = power * Poly::Var(a);
  EXPECT_TRUE(power.valid());
  EXPECT_FALSE((power * Poly::Var(b)).valid());
  EXPECT_FALSE(Poly::Invalid() == Poly::Invalid());
  EXPECT_FALSE(Trivial({Condition::Kind::kGe0, Poly::Invalid()}).has_value());
}

TEST_F(PolyTest, LinearCoefficientSeesDivisionsAndProducts) {
  const Poly va = Poly::Var(a), vb = Poly::Var(b);
  EXPECT_EQ((Poly(3) * va + vb).LinearCoefficient(a, symbols), 3);
  EXPECT_EQ(vb.LinearCoefficient(a, symbols), 0);
  EXPECT_EQ((va * vb + va).LinearCoefficient(a, symbols), std::nullopt);
  EXPECT_EQ((symbols.FloorDiv(va + 1, 2) + va).LinearCoefficient(a, symbols), std::nullopt);
}

TEST_F(PolyTest, NormalAndNegatedConditionsMeanTheSame) {
  for (int trial = 0; trial < 2000; ++trial) {
    Poly p(Random(-9, 9));
    for (Symbol s : {a, b}) p += Poly(2 * Random(-3, 3)) * Poly::Var(s);
    const Condition fact{Random(0, 1) == 0 ? Condition::Kind::kGe0 : Condition::Kind::kEq0, p};
    const Condition normal = Normal(fact);
    const auto v = RandomValues();
    const bool holds = *Holds(fact, symbols, v);
    EXPECT_EQ(*Holds(normal, symbols, v), holds) << Print(fact, symbols);
    if (const auto decided = Trivial(fact)) {
      EXPECT_EQ(*decided, holds);
    }
    int negated = 0;
    for (const Condition& n : Negate(fact)) negated += *Holds(n, symbols, v) ? 1 : 0;
    EXPECT_EQ(negated, holds ? 0 : 1);
  }
}

TEST_F(PolyTest, TheLeastCoefficientKeepsItsSign) {
  // -2^63 a >= 0 says a <= 0, and no normal form may turn it round.
  const Poly p = Poly(-INT64_MAX) * Poly::Var(a) - Poly::Var(a);
  ASSERT_TRUE(p.valid());
  for (const auto kind : {Condition::Kind::kGe0, Condition::Kind::kEq0}) {
    const Condition fact{kind, p};
    EXPECT_EQ(Normal(fact), fact);
    EXPECT_FALSE(Trivial(fact).has_value());
  }
}

}  // namespace
}  // namespace tenon::base
