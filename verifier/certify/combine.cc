// Phase one of the simplex method, with Bland's rule so that it ends: one row for each product of
// symbols, one column for each fact, artificial columns that the objective drives out. When they
// stay, the multipliers of the rows (read off the artificial columns) are the point at which all
// facts hold. Numbers are exact; one that leaves 128 bits gives up.
#include "verifier/certify/combine.h"

#include <algorithm>
#include <map>

namespace tenon::certify {
namespace {

using base::Monomial;
using base::Poly;
__extension__ using Wide = __int128;

struct Overflow {};

Wide Gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide r = a % b;
    a = b;
    b = r;
  }
  return a;
}

Wide Times(Wide a, Wide b) {
  Wide out = 0;
  if (__builtin_mul_overflow(a, b, &out)) throw Overflow{};
  return out;
}

Wide Plus(Wide a, Wide b) {
  Wide out = 0;
  if (__builtin_add_overflow(a, b, &out)) throw Overflow{};
  return out;
}

struct Fraction {
  Wide n = 0, d = 1;
  bool zero() const { return n == 0; }
  int sign() const { return (n > 0) - (n < 0); }
};

Fraction Lowest(Wide n, Wide d) {
  if (d < 0) n = -n, d = -d;
  const Wide g = Gcd(n, d);
  return g <= 1 ? Fraction{n, d} : Fraction{n / g, d / g};
}

Fraction operator*(const Fraction& a, const Fraction& b) {
  if (a.d == 1 && b.d == 1) return {Times(a.n, b.n), 1};
  return Lowest(Times(a.n, b.n), Times(a.d, b.d));
}

Fraction operator/(const Fraction& a, const Fraction& b) {
  return Lowest(Times(a.n, b.d), Times(a.d, b.n));
}

Fraction operator-(const Fraction& a, const Fraction& b) {
  if (a.d == 1 && b.d == 1) return {Plus(a.n, -b.n), 1};
  return Lowest(Plus(Times(a.n, b.d), -Times(b.n, a.d)), Times(a.d, b.d));
}

bool Less(const Fraction& a, const Fraction& b) { return Times(a.n, b.d) < Times(b.n, a.d); }

std::int64_t Floor(const Fraction& a) {
  Wide q = a.n / a.d;
  if (a.n % a.d != 0 && a.n < 0) --q;
  if (q > (Wide{1} << 61) || q < -(Wide{1} << 61)) throw Overflow{};
  return static_cast<std::int64_t>(q);
}

class Tableau {
 public:
  Tableau(std::span<const Poly> facts, const Poly& target) : columns_(facts.size()) {
    for (const Poly& f : facts) Number(f);
    Number(target);
    const std::size_t rows = number_.size();
    width_ = columns_ + rows + 1;
    cells_.assign((rows + 1) * width_, Fraction{});
    sign_.assign(rows, 1);
    for (const Poly::Term& t : target.terms()) {
      const std::size_t r = number_.at(t.monomial);
      sign_[r] = t.coefficient < 0 ? -1 : 1;
      At(r, width_ - 1) = {t.coefficient * sign_[r], 1};
    }
    for (std::size_t c = 0; c < columns_; ++c) {
      for (const Poly::Term& t : facts[c].terms()) {
        const std::size_t r = number_.at(t.monomial);
        At(r, c) = {t.coefficient * sign_[r], 1};
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      At(r, columns_ + r) = {1, 1};
      basis_.push_back(columns_ + r);
    }
    // The objective: the sum of the artificial columns, in terms of the others.
    for (std::size_t c = 0; c < width_; ++c) {
      if (c >= columns_ && c + 1 < width_) continue;
      for (std::size_t r = 0; r < rows; ++r) At(rows, c) = At(rows, c) - At(r, c);
    }
  }

  // True: the artificial columns are 0.
  bool Solve() {
    const std::size_t rows = number_.size();
    for (int pivots = 0; pivots < 2000; ++pivots) {
      if (At(rows, width_ - 1).zero()) return true;
      std::size_t enter = columns_;
      for (std::size_t c = 0; c < columns_ && enter == columns_; ++c) {
        if (At(rows, c).sign() < 0) enter = c;
      }
      if (enter == columns_) return false;
      std::size_t leave = rows;
      Fraction best;
      for (std::size_t r = 0; r < rows; ++r) {
        if (At(r, enter).sign() <= 0) continue;
        const Fraction ratio = At(r, width_ - 1) / At(r, enter);
        if (leave == rows || Less(ratio, best) ||
            (!Less(best, ratio) && basis_[r] < basis_[leave])) {
          leave = r;
          best = ratio;
        }
      }
      if (leave == rows) throw Overflow{};  // Cannot be: the objective is bounded.
      Pivot(leave, enter);
    }
    throw Overflow{};
  }

  std::vector<std::pair<std::size_t, std::int64_t>> Multipliers() {
    Wide common = 1;
    std::vector<std::pair<std::size_t, Fraction>> values;
    for (std::size_t r = 0; r < basis_.size(); ++r) {
      const Fraction& value = At(r, width_ - 1);
      if (basis_[r] >= columns_ || value.zero()) continue;
      values.emplace_back(basis_[r], value);
      common = Times(common / Gcd(common, value.d), value.d);
    }
    std::sort(values.begin(), values.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::pair<std::size_t, std::int64_t>> out;
    for (const auto& [k, value] : values) {
      const Wide whole = Times(value.n, common / value.d);
      if (whole > Wide{1} << 62) throw Overflow{};
      out.emplace_back(k, static_cast<std::int64_t>(whole));
    }
    return out;
  }

  std::vector<Coordinate> Point() {
    const std::size_t rows = number_.size();
    const auto dual = [&](std::size_t r) {
      Fraction y = Fraction{1, 1} - At(rows, columns_ + r);
      y.n *= sign_[r];
      return y;
    };
    const Fraction scale = dual(number_.at(Monomial{}));
    std::vector<Coordinate> out;
    if (scale.zero()) return out;
    for (const auto& [monomial, r] : number_) {
      if (monomial[0] == 0) continue;
      const Fraction value = dual(r) / scale;
      out.push_back({monomial, Floor(value), value.d == 1});
    }
    return out;
  }

 private:
  Fraction& At(std::size_t r, std::size_t c) { return cells_[r * width_ + c]; }

  void Number(const Poly& p) {
    for (const Poly::Term& t : p.terms()) number_.emplace(t.monomial, number_.size());
  }

  void Pivot(std::size_t leave, std::size_t enter) {
    const Fraction pivot = At(leave, enter);
    std::vector<std::size_t> used;
    for (std::size_t c = 0; c < width_; ++c) {
      Fraction& cell = At(leave, c);
      if (cell.zero()) continue;
      cell = cell / pivot;
      used.push_back(c);
    }
    for (std::size_t r = 0; r <= number_.size(); ++r) {
      const Fraction factor = At(r, enter);
      if (r == leave || factor.zero()) continue;
      for (const std::size_t c : used) At(r, c) = At(r, c) - factor * At(leave, c);
    }
    basis_[leave] = enter;
  }

  const std::size_t columns_;
  std::size_t width_ = 0;
  std::map<Monomial, std::size_t> number_;
  std::vector<Fraction> cells_;
  std::vector<int> sign_;
  std::vector<std::size_t> basis_;
};

}  // namespace

Combined Combine(std::span<const Poly> facts, const Poly& target) {
  Combined out;
  try {
    Tableau tableau(facts, target);
    if (tableau.Solve()) {
      out.multipliers = tableau.Multipliers();
    } else if (target.is_constant(-1)) {
      out.point = tableau.Point();
    }
  } catch (const Overflow&) {
    out = {};
  }
  return out;
}

}  // namespace tenon::certify
