// Access coordinates against counting: a term's pieces, added up at any point, say how often the
// term reads exactly there.
#include "verifier/nf/coordinates.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "verifier/nf/unsupported.h"
#include "verifier/smt/solver.h"

namespace tenon::nf {
namespace {

using base::SymbolKind;

constexpr std::int64_t kLow = -3, kHigh = 9;  // What binders are tried over; ranges are inside.

class CoordinatesTest : public testing::Test {
 protected:
  CoordinatesTest() {
    dims_ = {symbols_.Add("m", SymbolKind::kDim), symbols_.Add("n", SymbolKind::kDim)};
    index_ = symbols_.Add("i", SymbolKind::kIndex);
  }

  std::int64_t Below(std::int64_t n) { return std::int64_t(random_() % std::uint64_t(n)); }
  // c1 * s1 + c2 * s2 + .. + constant over some of the symbols.
  Poly Linear(const std::vector<Symbol>& over, std::int64_t most) {
    Poly p = Below(5) - 2;
    for (Symbol s : over) {
      if (Below(2) == 0) p += Poly(Below(2 * most + 1) - most) * Poly::Var(s);
    }
    return p;
  }
  Term RandomTerm(Session& s) {
    Term t;
    std::vector<Symbol> all = dims_;
    all.push_back(index_);
    const std::int64_t binders = 1 + Below(3);
    for (std::int64_t b = 0; b < binders; ++b) {
      const Symbol k = s.Fresh(SymbolKind::kBinder);
      AddGuard(t.guards, base::Ge(Poly::Var(k), Poly(Below(3) - 1)));
      AddGuard(t.guards,
               base::Lt(Poly::Var(k), Below(2) == 0 ? Poly::Var(dims_[std::size_t(Below(2))])
                                                    : Poly(1 + Below(4))));
      t.binders.push_back(k);
      all.push_back(k);
    }
    for (std::int64_t g = Below(3); g > 0; --g) {
      const Poly p = Linear(all, 2);
      if (!AddGuard(t.guards, Below(4) == 0 ? Condition{Condition::Kind::kEq0, p}
                                            : Condition{Condition::Kind::kGe0, p})) {
        return RandomTerm(s);
      }
    }
    Atom a;
    for (std::int64_t q = 1 + Below(2); q > 0; --q) a.index.push_back(Linear(all, 3));
    t.atoms.push_back(std::move(a));
    return t;
  }

  std::mt19937_64 random_{11};
  base::Symbols symbols_;
  std::vector<Symbol> dims_;
  Symbol index_ = 0;
};

TEST_F(CoordinatesTest, CountsWhatTheTermReads) {
  int terms = 0, points = 0, unsupported = 0;
  while (terms < 400) {
    smt::Solver solver(symbols_, {}, {});
    Session s(symbols_, solver, {}, Fault::kNone);
    if (symbols_.size() > 50'000) break;
    const Term t = RandomTerm(s);
    std::vector<Counted> pieces;
    const int order[] = {0};
    try {
      Coordinates(s, t, {}, order, /*with_atoms=*/true, pieces);
    } catch (const Unsupported&) {
      ++unsupported;
      ++terms;
      continue;
    }
    ++terms;
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int64_t> values(symbols_.size(), 0);
      for (Symbol d : dims_) values[d] = 1 + Below(4);
      values[index_] = Below(5) - 1;
      std::map<std::vector<std::int64_t>, std::int64_t> read;
      const std::function<void(std::size_t)> run = [&](std::size_t b) {
        if (b < t.binders.size()) {
          for (values[t.binders[b]] = kLow; values[t.binders[b]] <= kHigh; ++values[t.binders[b]]) {
            run(b + 1);
          }
          return;
        }
        for (const Condition& c : t.guards) {
          if (base::Holds(c, symbols_, values) != true) return;
        }
        std::vector<std::int64_t> at;
        for (const Poly& p : t.atoms[0].index) at.push_back(*symbols_.Eval(p, values));
        ++read[at];
      };
      run(0);
      // Where it reads, and at points beside.
      std::vector<std::vector<std::int64_t>> at;
      for (const auto& [point, count] : read) at.push_back(point);
      for (int k = 0; k < 5; ++k) {
        std::vector<std::int64_t> point;
        for (std::size_t q = 0; q < t.atoms[0].index.size(); ++q) point.push_back(Below(13) - 6);
        at.push_back(point);
      }
      for (const auto& point : at) {
        for (std::size_t q = 0; q < point.size(); ++q) values[s.Coord(0, int(q))] = point[q];
        std::int64_t sum = 0;
        for (const Counted& c : pieces) {
          bool holds = true;
          for (const Condition& g : c.when)
            holds = holds && base::Holds(g, symbols_, values) == true;
          if (holds) sum += *symbols_.Eval(c.count, values);
        }
        const auto found = read.find(point);
        EXPECT_EQ(sum, found == read.end() ? 0 : found->second);
        ++points;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(points, 5'000);
  EXPECT_LT(unsupported, terms / 4);
}

}  // namespace
}  // namespace tenon::nf
