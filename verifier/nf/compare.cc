// Terms are grouped by the heads they read. Within a group the coordinates of the accesses are
// integers like any other, and each term is "so often, where these conditions hold"
// (verifier/nf/coordinates.h). Distinct monomials are linearly independent over the reals, so the
// two sides are equal for all values of the tensors iff in every group the weights add up to 0 at
// every point: one question of linear integer arithmetic. Equal factors commute, so a term stands
// for all orders of them; both sides do, which keeps the question equivalent.
#include "verifier/nf/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "verifier/nf/coordinates.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

struct Signed {
  int sign = 1;
  const Term* term = nullptr;
};
using Groups = std::map<std::vector<Head>, std::vector<Signed>>;

void Sort(Groups& groups, const Nf& nf, int sign) {
  for (const Term& t : nf) {
    std::vector<Head> heads;
    for (const Atom& a : t.atoms) heads.push_back(a.head);
    std::sort(heads.begin(), heads.end());
    groups[heads].push_back({sign, &t});
  }
}

// All pieces of a term, for every order of equal factors.
void AllOrders(Session& s, const Term& t, const Guards& given, std::vector<Counted>& out) {
  std::vector<int> order(t.atoms.size());
  std::iota(order.begin(), order.end(), 0);
  const auto head = [&](int k) { return t.atoms[static_cast<std::size_t>(k)].head; };
  std::sort(order.begin(), order.end(),
            [&](int x, int y) { return head(x) != head(y) ? head(x) < head(y) : x < y; });
  int count = 0;
  // next_permutation within each run of equal heads, like an odometer.
  for (bool more = true; more;) {
    if (++count > s.limits.permutations) throw Unsupported("a product of too many equal factors");
    Coordinates(s, t, given, order, /*with_atoms=*/true, out);
    more = false;
    for (std::size_t first = 0; first < order.size() && !more;) {
      std::size_t last = first;
      while (last < order.size() && head(order[last]) == head(order[first])) ++last;
      const auto begin = order.begin();
      more = std::next_permutation(begin + static_cast<std::ptrdiff_t>(first),
                                   begin + static_cast<std::ptrdiff_t>(last));
      first = last;
    }
  }
}

Poly Weight(const Counted& c, int sign, std::int64_t scale, const std::vector<Poly>& sizes) {
  const Rational k = c.coefficient * Rational(sign) * Rational(scale);
  Poly w = Poly(k.numerator()) * c.count;
  bool own = false;
  for (const Poly& size : sizes) {
    if (!own && size == c.size) {
      own = true;
    } else {
      w = w * size;
    }
  }
  return Valid(w);
}

// Integer weights: every piece times the least common denominator and the product of all sizes that
// divide. Pieces that hold at the same points become one.
std::vector<Piece> Pieces(const std::vector<std::pair<int, Counted>>& counted) {
  std::int64_t scale = 1;
  std::vector<Poly> sizes;
  for (const auto& [sign, c] : counted) {
    const std::int64_t d = c.coefficient.denominator();
    if (__builtin_mul_overflow(scale, d / std::gcd(scale, d), &scale)) {
      throw Unsupported("a coefficient overflows");
    }
    const bool known = std::find(sizes.begin(), sizes.end(), c.size) != sizes.end();
    if (!c.size.is_constant(1) && !known) sizes.push_back(c.size);
  }
  std::vector<Piece> out;
  for (const auto& [sign, c] : counted) {
    Piece piece{Weight(c, sign, scale, sizes), c.when};
    std::sort(piece.when.begin(), piece.when.end(), base::Before);
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const Piece& p) { return p.when == piece.when; });
    if (same == out.end()) {
      out.push_back(std::move(piece));
    } else {
      same->weight = Valid(same->weight + piece.weight);
    }
  }
  std::erase_if(out, [](const Piece& p) { return p.weight.is_constant(0); });
  return out;
}

std::string Monomial(const Session& s, const std::vector<Head>& heads) {
  if (heads.empty()) return "the constant part";
  std::string out = "the factor of ";
  for (std::size_t k = 0; k < heads.size(); ++k) {
    out += (k == 0 ? "" : " * ") + s.HeadName(heads[k]);
  }
  return out;
}

Comparison Failed(const Session& s, const std::vector<Head>& heads, Balance balance) {
  Comparison c;
  c.kind =
      balance.kind == Balance::Kind::kNo ? Comparison::Kind::kDiffer : Comparison::Kind::kUnknown;
  c.where = Monomial(s, heads);
  c.model = std::move(balance.model);
  return c;
}

Comparison Same() {
  Comparison c;
  c.kind = Comparison::Kind::kEqual;
  return c;
}

}  // namespace

Comparison Compare(Session& s, const Nf& a, const Nf& b, const Guards& given) {
  Groups groups;
  Sort(groups, a, 1);
  Sort(groups, b, -1);
  for (const auto& [heads, terms] : groups) {
    std::vector<std::pair<int, Counted>> counted;
    for (const Signed& t : terms) {
      std::vector<Counted> pieces;
      AllOrders(s, *t.term, given, pieces);
      for (Counted& c : pieces) counted.emplace_back(t.sign, std::move(c));
    }
    const std::vector<Piece> pieces = Pieces(counted);
    if (pieces.empty()) continue;
    Balance balance = s.facts.Balanced(given, pieces);
    if (balance.kind != Balance::Kind::kYes) return Failed(s, heads, std::move(balance));
  }
  return Same();
}

Comparison CompareFamilies(Session& s, const Nf& a, const Nf& b, const Guards& given) {
  Groups groups;
  Sort(groups, a, 1);
  Sort(groups, b, -1);
  const auto less = [](const Piece& x, const Piece& y) {
    return std::lexicographical_compare(x.when.begin(), x.when.end(), y.when.begin(), y.when.end(),
                                        base::Before);
  };
  for (const auto& [heads, terms] : groups) {
    std::vector<Piece> left, right;
    for (const Signed& t : terms) {
      std::vector<Counted> pieces;
      AllOrders(s, *t.term, given, pieces);
      for (Counted& c : pieces) {
        std::sort(c.when.begin(), c.when.end(), base::Before);
        (t.sign > 0 ? left : right).push_back({Poly(1), std::move(c.when)});
      }
    }
    std::sort(left.begin(), left.end(), less);
    std::sort(right.begin(), right.end(), less);
    const bool same = std::equal(left.begin(), left.end(), right.begin(), right.end(),
                                 [](const Piece& x, const Piece& y) { return x.when == y.when; });
    if (same) continue;
    Balance balance = s.facts.SameSets(given, left, right);
    if (balance.kind != Balance::Kind::kYes) return Failed(s, heads, std::move(balance));
  }
  return Same();
}

}  // namespace tenon::nf
