// The oracle: what it may say, and that it always comes back.
#include "verifier/smt/solver.h"

#include <gtest/gtest.h>

namespace tenon::smt {
namespace {

using base::Condition;
using base::Ge;
using base::Lt;
using base::Poly;
using base::SymbolKind;

class SolverTest : public testing::Test {
 protected:
  Poly New(const char* name, SymbolKind kind) { return Poly::Var(symbols_.Add(name, kind)); }
  bool Implied(const std::vector<Condition>& given, const Condition& claim) {
    Solver solver(symbols_, {}, {});
    return solver.Implies(given, std::vector<Condition>{claim});
  }
  base::Symbols symbols_;
};

TEST_F(SolverTest, DimsAreAtLeastOne) {
  const Poly n = New("n", SymbolKind::kDim), a = New("a", SymbolKind::kAttr);
  EXPECT_TRUE(Implied({}, Ge(n, Poly(1))));
  EXPECT_FALSE(Implied({}, Ge(n, Poly(2))));
  EXPECT_FALSE(Implied({}, Ge(a, Poly(0))));
}

TEST_F(SolverTest, ProductsOfSizes) {
  const Poly a = New("a", SymbolKind::kDim), b = New("b", SymbolKind::kDim);
  const Poly i = New("i", SymbolKind::kIndex), j = New("j", SymbolKind::kIndex);
  const std::vector<Condition> inside{Ge(i, Poly(0)), Lt(i, a), Ge(j, Poly(0)), Lt(j, b)};
  EXPECT_TRUE(Implied(inside, Lt(i * b + j, a * b)));
  EXPECT_TRUE(Implied(inside, Ge(i * b + j, Poly(0))));
  EXPECT_FALSE(Implied(inside, Lt(i * b + j, a * b - 1)));
  EXPECT_TRUE(Implied({}, Ge(a * b, a)));
  EXPECT_FALSE(Implied({}, Ge(a * b, a + 1)));
  const std::vector<Condition> digit{Ge(i, Poly(0)), Lt(i, Poly(4)), Ge(j, Poly(0)), Lt(j, b)};
  EXPECT_TRUE(Implied(digit, Lt(i * b + j, Poly(4) * b)));
  EXPECT_FALSE(Implied(digit, Lt(i * b + j, Poly(3) * b)));
}

// A row-major number, divided by the other extent: what a reshape to transposed extents reads.
TEST_F(SolverTest, DigitsOfARowMajorNumber) {
  const Poly a = New("a", SymbolKind::kDim), b = New("b", SymbolKind::kDim);
  const Poly i = New("i", SymbolKind::kIndex), j = New("j", SymbolKind::kIndex);
  const std::vector<Condition> inside{Ge(i, Poly(0)), Lt(i, b), Ge(j, Poly(0)), Lt(j, a)};
  const Poly q = symbols_.FloorDiv(i * a + j, b);
  EXPECT_TRUE(Implied(inside, Ge(q, Poly(0))));
  EXPECT_TRUE(Implied(inside, Lt(q, a)));
  EXPECT_FALSE(Implied(inside, Lt(q, a - 1)));
}

TEST_F(SolverTest, SignsOfProducts) {
  const Poly x = New("x", SymbolKind::kAttr), y = New("y", SymbolKind::kAttr);
  const std::vector<Condition> mixed{Ge(x, Poly(1)), Ge(Poly(-1), y)};
  EXPECT_TRUE(Implied(mixed, Lt(x * y, Poly(0))));
  EXPECT_FALSE(Implied({Ge(x, Poly(0))}, Ge(x * y, Poly(0))));
}

TEST_F(SolverTest, FloorDivisions) {
  const Poly n = New("n", SymbolKind::kDim), s = New("s", SymbolKind::kAttr);
  const Poly half = symbols_.FloorDiv(n, Poly(2));
  EXPECT_TRUE(Implied({}, Ge(n, Poly(2) * half)));
  EXPECT_TRUE(Implied({}, Lt(n, Poly(2) * half + 2)));
  EXPECT_FALSE(Implied({}, Condition{Condition::Kind::kEq0, n - Poly(2) * half}));
  const Poly q = symbols_.FloorDiv(n, s);
  EXPECT_TRUE(Implied({Ge(s, Poly(1))}, Ge(n, s * q)));
  EXPECT_TRUE(Implied({Ge(s, Poly(1))}, Ge(q, Poly(0))));
  // Nothing is said of a divisor that may be 0 or negative.
  EXPECT_FALSE(Implied({}, Ge(n, s * q)));
}

TEST_F(SolverTest, BalanceComesWithSizes) {
  const Poly n = New("n", SymbolKind::kDim);
  Solver solver(symbols_, {}, {});
  const std::vector<nf::Piece> pieces{{Poly(1), {Ge(n, Poly(7))}}};
  const nf::Balance b = solver.Balanced({}, pieces);
  ASSERT_EQ(b.kind, nf::Balance::Kind::kNo);
  EXPECT_GE(b.model.at(symbols_.Find("n")), 7);
  EXPECT_EQ(solver.Balanced(std::vector<Condition>{Lt(n, Poly(7))}, pieces).kind,
            nf::Balance::Kind::kYes);
  // A question leaves nothing behind.
  EXPECT_EQ(solver.Balanced({}, pieces).kind, nf::Balance::Kind::kNo);
}

TEST_F(SolverTest, QuestionsThatExceedTheirLimitAreUnknown) {
  const Poly n = New("n", SymbolKind::kDim), m = New("m", SymbolKind::kDim);
  SolverLimits limits;
  limits.integer_rlimit = 1;
  Solver solver(symbols_, {}, limits);
  const std::vector<nf::Piece> pieces{{n * m, {Ge(n, m + 1)}}, {-n, {Ge(m, n + 1)}}};
  EXPECT_EQ(solver.Balanced({}, pieces).kind, nf::Balance::Kind::kUnknown);
  EXPECT_EQ(solver.counts().unknown, 1);
  EXPECT_EQ(solver.counts().killed, 0);
}

nf::RealTerm T(std::int64_t c, std::vector<int> factors) { return {c, std::move(factors)}; }

TEST_F(SolverTest, RealFactsOfMaxima) {
  Solver solver(symbols_, {}, {});
  // v1 = max(0, v0), v2 = max(0, -v0): v1 - v2 = v0, v1 v2 = 0, but v1 + v2 is not v0.
  nf::RealProblem p;
  p.variables = 3;
  p.maxima = {{1, {{}, {T(1, {0})}}}, {2, {{}, {T(-1, {0})}}}};
  p.goal = {T(1, {1}), T(-1, {2}), T(-1, {0})};
  EXPECT_TRUE(solver.RealZero(p));
  p.goal = {T(1, {1, 2})};
  EXPECT_TRUE(solver.RealZero(p));
  p.goal = {T(1, {1}), T(1, {2}), T(-1, {0})};
  EXPECT_FALSE(solver.RealZero(p));
}

// Real arithmetic has been seen to ignore its limit for minutes. The watchdog ends it.
TEST_F(SolverTest, WatchdogEndsWhatIgnoresItsLimit) {
  SolverLimits limits;
  limits.real_rlimit = 4'000'000'000u;
  limits.watchdog = std::chrono::milliseconds(100);
  Solver solver(symbols_, {}, limits);
  // A sum of 24 products of unknowns that are tied by maxima of high degree.
  nf::RealProblem p;
  p.variables = 24;
  for (int k = 0; k + 2 < p.variables; ++k) {
    const int a = k, b = (k * 7 + 3) % p.variables, c = (k * 11 + 5) % p.variables;
    p.maxima.push_back({k + 2, {{T(1, {a, b, c}), T(-3, {b, b})}, {T(2, {a, a, c}), T(1, {b})}}});
    p.goal.push_back(T(k % 3 - 1, {a, b, c}));
  }
  p.goal.push_back(T(1, {0, 1, 2, 3}));
  p.goal.push_back(T(-7, {5, 5, 5, 9}));
  EXPECT_FALSE(solver.RealZero(p));
  EXPECT_EQ(solver.counts().killed, 1);
}

}  // namespace
}  // namespace tenon::smt
