#include "core/base/poly.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "core/base/check.h"
#include "core/base/integer.h"

namespace tenon::base {
namespace {

// Foreign rules may ask for products of long sums; what is beyond is as good as an overflow.
constexpr std::size_t kTermsMax = std::size_t{1} << 16;

bool AddInto(std::int64_t& sum, std::int64_t x) { return !__builtin_add_overflow(sum, x, &sum); }

int Degree(const Monomial& m) {
  int d = 0;
  while (d < kDegreeMax && m[static_cast<unsigned>(d)] != 0) ++d;
  return d;
}

// The product, or nothing when its degree is too high.
std::optional<Monomial> Times(const Monomial& a, const Monomial& b) {
  const int da = Degree(a), db = Degree(b);
  if (da + db > kDegreeMax) return std::nullopt;
  Monomial m{};
  std::merge(a.begin(), a.begin() + da, b.begin(), b.begin() + db, m.begin(), std::greater<>());
  return m;
}

// a / b when b divides a.
std::optional<Monomial> Over(const Monomial& a, const Monomial& b) {
  Monomial m{};
  unsigned out = 0, j = 0;
  const auto db = static_cast<unsigned>(Degree(b));
  for (unsigned i = 0; i < kDegreeMax && a[i] != 0; ++i) {
    if (j < db && b[j] == a[i]) {
      ++j;
    } else {
      m[out++] = a[i];
    }
  }
  if (j < db) return std::nullopt;
  return m;
}

// n / d if that is a polynomial; d has at least two terms. Monomials compare by their greatest
// symbols first, so every step takes the greatest term away and adds smaller ones.
std::optional<Poly> Exact(const Poly& n, const Poly& d) {
  const Poly::Term& lead = d.terms().back();
  Poly quotient, rest = n;
  while (rest.valid() && !rest.terms().empty()) {
    const Poly::Term& top = rest.terms().back();
    const auto m = Over(top.monomial, lead.monomial);
    if (!m || top.coefficient % lead.coefficient != 0) return std::nullopt;
    Poly step(top.coefficient / lead.coefficient);
    for (const Symbol s : *m) {
      if (s != 0) step = step * Poly::Var(s);
    }
    quotient = quotient + step;
    rest = rest - step * d;
  }
  return rest.valid() ? std::optional(quotient) : std::nullopt;
}

std::size_t Mix(std::size_t h, std::uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

}  // namespace

Poly::Poly(std::int64_t constant) {
  if (constant != 0) terms_.push_back({Monomial{}, constant});
}

Poly Poly::Var(Symbol symbol) {
  CHECK(symbol != 0);
  Poly p;
  Monomial m{};
  m[0] = symbol;
  p.terms_.push_back({m, 1});
  return p;
}

Poly Poly::Invalid() {
  Poly p;
  p.valid_ = false;
  return p;
}

bool Poly::is_constant() const {
  return valid_ && (terms_.empty() || (terms_.size() == 1 && terms_[0].monomial[0] == 0));
}

std::int64_t Poly::constant() const {
  CHECK(is_constant());
  return terms_.empty() ? 0 : terms_[0].coefficient;
}

std::int64_t Poly::constant_part() const {
  return terms_.empty() || terms_[0].monomial[0] != 0 ? 0 : terms_[0].coefficient;
}

void Poly::CollectSymbols(std::vector<Symbol>& out, const Symbols* symbols) const {
  for (const Term& t : terms_) {
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      if (std::find(out.begin(), out.end(), s) != out.end()) continue;
      out.push_back(s);
      if (symbols != nullptr && symbols->kind(s) == SymbolKind::kDiv) {
        symbols->numerator(s).CollectSymbols(out, symbols);
        symbols->denominator(s).CollectSymbols(out, symbols);
      }
    }
  }
}

bool Poly::Mentions(Symbol symbol, const Symbols& symbols) const {
  for (const Term& t : terms_) {
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      if (s == symbol) return true;
      if (symbols.kind(s) == SymbolKind::kDiv &&
          (symbols.numerator(s).Mentions(symbol, symbols) ||
           symbols.denominator(s).Mentions(symbol, symbols))) {
        return true;
      }
    }
  }
  return false;
}

std::optional<std::int64_t> Poly::LinearCoefficient(Symbol symbol, const Symbols& symbols) const {
  std::int64_t c = 0;
  for (const Term& t : terms_) {
    if (t.monomial[0] == symbol && t.monomial[1] == 0) {
      c = t.coefficient;
      continue;
    }
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      if (s == symbol || Poly::Var(s).Mentions(symbol, symbols)) return std::nullopt;
    }
  }
  return c;
}

Poly Poly::operator-() const { return Poly(0) - *this; }

namespace {

// a + sign * b.
Poly Combine(const Poly& a, const Poly& b, std::int64_t sign, std::vector<Poly::Term>& out) {
  auto i = a.terms().begin();
  auto j = b.terms().begin();
  while (i != a.terms().end() || j != b.terms().end()) {
    if (j == b.terms().end() || (i != a.terms().end() && i->monomial < j->monomial)) {
      out.push_back(*i++);
      continue;
    }
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(j->coefficient, sign, &scaled)) return Poly::Invalid();
    if (i != a.terms().end() && i->monomial == j->monomial) {
      if (!AddInto(scaled, i->coefficient)) return Poly::Invalid();
      ++i;
    }
    if (scaled != 0) out.push_back({j->monomial, scaled});
    ++j;
  }
  return {};
}

}  // namespace

Poly operator+(const Poly& a, const Poly& b) {
  if (!a.valid_ || !b.valid_) return Poly::Invalid();
  Poly sum;
  if (!Combine(a, b, 1, sum.terms_).valid()) return Poly::Invalid();
  return sum;
}

Poly operator-(const Poly& a, const Poly& b) {
  if (!a.valid_ || !b.valid_) return Poly::Invalid();
  Poly difference;
  if (!Combine(a, b, -1, difference.terms_).valid()) return Poly::Invalid();
  return difference;
}

Poly operator*(const Poly& a, const Poly& b) {
  if (!a.valid_ || !b.valid_) return Poly::Invalid();
  if (a.terms_.size() * b.terms_.size() > kTermsMax) return Poly::Invalid();
  Poly product;
  std::vector<Poly::Term>& all = product.terms_;
  for (const Poly::Term& x : a.terms_) {
    for (const Poly::Term& y : b.terms_) {
      const auto m = Times(x.monomial, y.monomial);
      std::int64_t c = 0;
      if (!m || __builtin_mul_overflow(x.coefficient, y.coefficient, &c)) return Poly::Invalid();
      all.push_back({*m, c});
    }
  }
  std::sort(all.begin(), all.end());
  std::size_t kept = 0;
  for (std::size_t k = 0; k < all.size();) {
    Poly::Term t = all[k++];
    while (k < all.size() && all[k].monomial == t.monomial) {
      if (!AddInto(t.coefficient, all[k++].coefficient)) return Poly::Invalid();
    }
    if (t.coefficient != 0) all[kept++] = t;
  }
  all.resize(kept);
  return product;
}

std::size_t Poly::Hash() const {
  std::size_t h = valid_ ? 17 : 1;
  for (const Term& t : terms_) {
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      h = Mix(h, s);
    }
    h = Mix(h, static_cast<std::uint64_t>(t.coefficient));
  }
  return h;
}

Symbols::Symbols() : entries_(1) {}

Symbol Symbols::Add(std::string_view name, SymbolKind kind) {
  if (entries_.size() > 0xffff) return 0;
  entries_.push_back({std::string(name), kind, {}, {}});
  return static_cast<Symbol>(entries_.size() - 1);
}

Symbol Symbols::Find(std::string_view name) const {
  for (std::size_t s = 1; s < entries_.size(); ++s) {
    if ((entries_[s].kind == SymbolKind::kDim || entries_[s].kind == SymbolKind::kAttr) &&
        entries_[s].name == name) {
      return static_cast<Symbol>(s);
    }
  }
  return 0;
}

// p + floor(n / c), for a single such division and a constant c, over the constant d: that is one
// division of p c + n by c d. Nothing otherwise.
static std::optional<Poly> MergedDiv(Symbols& symbols, const Poly& n, const Poly& d) {
  if (!d.is_constant()) return std::nullopt;
  Symbol inner = 0;
  Poly rest;
  for (const Poly::Term& t : n.terms()) {
    bool divides = false;
    Poly product(t.coefficient);
    for (const Symbol s : t.monomial) {
      if (s == 0) break;
      divides = divides || symbols.kind(s) == SymbolKind::kDiv;
      product = product * Poly::Var(s);
    }
    if (!divides) {
      rest += product;
    } else if (inner == 0 && t.coefficient == 1 && t.monomial[1] == 0) {
      inner = t.monomial[0];
    } else {
      return std::nullopt;
    }
  }
  if (inner == 0 || !symbols.denominator(inner).is_constant()) return std::nullopt;
  const Poly c = symbols.denominator(inner);
  const Poly whole = rest * c + symbols.numerator(inner), by = c * d;
  if (!whole.valid() || !by.valid()) return std::nullopt;
  return symbols.FloorDiv(whole, by);
}

Poly Symbols::InternDiv(const Poly& n, const Poly& d) {
  if (const auto merged = MergedDiv(*this, n, d)) return *merged;
  const std::size_t h = Mix(n.Hash(), d.Hash());
  const auto [first, last] = divisions_.equal_range(h);
  for (auto it = first; it != last; ++it) {
    if (numerator(it->second) == n && denominator(it->second) == d) return Poly::Var(it->second);
  }
  const Symbol s = Add("div", SymbolKind::kDiv);
  if (s == 0) return Poly::Invalid();
  entries_[s].numerator = n;
  entries_[s].denominator = d;
  divisions_.emplace(h, s);
  return Poly::Var(s);
}

Poly Symbols::FloorDiv(const Poly& n, const Poly& d) {
  if (!n.valid() || !d.valid() || d.terms().empty()) return Poly::Invalid();
  if (n == d) return 1;
  if (d.is_constant()) {
    const std::int64_t c = d.constant();
    if (c < 1) return Poly::Invalid();
    if (c == 1) return n;
    Poly q, r;
    for (const Poly::Term& t : n.terms()) {
      const std::int64_t whole = FloorDivide(t.coefficient, c);
      const std::int64_t rest = t.coefficient - whole * c;
      if (whole != 0) q.terms_.push_back({t.monomial, whole});
      if (rest != 0) r.terms_.push_back({t.monomial, rest});
    }
    // The rest is a constant in [0, c), or an opaque division.
    return r.is_constant() ? q : q + InternDiv(r, d);
  }
  if (d.terms().size() == 1 && d.terms()[0].coefficient == 1) {
    Poly q, r;
    for (const Poly::Term& t : n.terms()) {
      if (const auto m = Over(t.monomial, d.terms()[0].monomial)) {
        q = q + [&] {
          Poly one;
          one.terms_.push_back({*m, t.coefficient});
          return one;
        }();
      } else {
        r.terms_.push_back(t);
      }
    }
    return r.terms().empty() ? q : q + InternDiv(r, d);
  }
  if (n.terms().empty()) return 0;
  const std::optional<Poly> exact = Exact(n, d);
  return exact ? *exact : InternDiv(n, d);
}

Poly Symbols::Mod(const Poly& n, const Poly& d) { return n - d * FloorDiv(n, d); }

Poly Symbols::Substitute(const Poly& p, const Substitution& replacement) {
  if (!p.valid()) return p;
  Poly out;
  for (const Poly::Term& t : p.terms()) {
    Poly product(t.coefficient);
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      const auto it = replacement.find(s);
      if (it != replacement.end()) {
        product = product * it->second;
      } else if (kind(s) == SymbolKind::kDiv) {
        const Poly n = numerator(s), d = denominator(s);  // Copies: entries_ may grow.
        const Poly n2 = Substitute(n, replacement), d2 = Substitute(d, replacement);
        product = product * (n2 == n && d2 == d ? Poly::Var(s) : FloorDiv(n2, d2));
      } else {
        product = product * Poly::Var(s);
      }
    }
    out = out + product;
  }
  return out;
}

std::optional<std::int64_t> Symbols::Eval(const Poly& p,
                                          std::span<const std::int64_t> values) const {
  if (!p.valid()) return std::nullopt;
  std::int64_t sum = 0;
  for (const Poly::Term& t : p.terms()) {
    std::int64_t product = t.coefficient;
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      std::int64_t v = 0;
      if (kind(s) == SymbolKind::kDiv) {
        const auto n = Eval(numerator(s), values), d = Eval(denominator(s), values);
        if (!n || !d || *d < 1) return std::nullopt;
        v = FloorDivide(*n, *d);
      } else {
        if (s >= values.size()) return std::nullopt;
        v = values[s];
      }
      if (__builtin_mul_overflow(product, v, &product)) return std::nullopt;
    }
    if (!AddInto(sum, product)) return std::nullopt;
  }
  return sum;
}

std::string Symbols::Print(const Poly& p) const {
  if (!p.valid()) return "invalid";
  if (p.terms().empty()) return "0";
  std::string out;
  const auto& terms = p.terms();
  // Constants last: "2*a+1" reads better than "1+2*a".
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const Poly::Term& t = terms[terms.size() - 1 - k];
    std::string body;
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      if (!body.empty()) body += '*';
      body += kind(s) == SymbolKind::kDiv
                  ? fmt::format("div({},{})", Print(numerator(s)), Print(denominator(s)))
                  : name(s);
    }
    const bool negative = t.coefficient < 0;
    if (negative) {
      out += '-';
    } else if (k > 0) {
      out += '+';
    }
    const std::string digits = std::to_string(t.coefficient).substr(negative ? 1 : 0);
    if (body.empty()) {
      out += digits;
    } else {
      out += digits == "1" ? body : digits + "*" + body;
    }
  }
  return out;
}

std::vector<Condition> Negate(const Condition& c) {
  const Condition below{Condition::Kind::kGe0, -c.p - 1};
  if (c.kind == Condition::Kind::kGe0) return {below};
  return {{Condition::Kind::kGe0, c.p - 1}, below};
}

namespace {

// Such a coefficient has no negation and no absolute value.
bool HasLeastInteger(const Poly& p) {
  return std::any_of(p.terms().begin(), p.terms().end(),
                     [](const Poly::Term& t) { return t.coefficient == INT64_MIN; });
}

}  // namespace

Condition Normal(const Condition& c) {
  if (!c.p.valid() || c.p.is_constant() || HasLeastInteger(c.p)) return c;
  std::int64_t g = 0;
  for (const Poly::Term& t : c.p.terms()) {
    if (t.monomial[0] != 0) g = std::gcd(g, t.coefficient);
  }
  const std::int64_t constant = c.p.constant_part();
  Poly p;
  const bool divides = constant % g == 0;
  if (c.kind == Condition::Kind::kEq0 && !divides) return c;  // Trivially false; left as it is.
  for (const Poly::Term& t : c.p.terms()) {
    Poly one = t.monomial[0] == 0 ? Poly(FloorDivide(t.coefficient, g)) : Poly(t.coefficient / g);
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      one = one * Poly::Var(s);
    }
    p = p + one;
  }
  if (c.kind == Condition::Kind::kEq0 && p.terms().back().coefficient < 0) p = -p;
  return {c.kind, p};
}

std::optional<bool> Trivial(const Condition& c) {
  if (!c.p.valid()) return std::nullopt;
  if (c.p.is_constant()) {
    return c.kind == Condition::Kind::kGe0 ? c.p.constant() >= 0 : c.p.constant() == 0;
  }
  if (c.kind == Condition::Kind::kEq0 && !HasLeastInteger(c.p)) {
    std::int64_t g = 0;
    for (const Poly::Term& t : c.p.terms()) {
      if (t.monomial[0] != 0) g = std::gcd(g, t.coefficient);
    }
    if (c.p.constant_part() % g != 0) return false;
  }
  return std::nullopt;
}

bool Before(const Condition& a, const Condition& b) {
  return a.kind != b.kind ? a.kind < b.kind : Poly::Before(a.p, b.p);
}

std::optional<bool> Holds(const Condition& c, const Symbols& s,
                          std::span<const std::int64_t> values) {
  const auto v = s.Eval(c.p, values);
  if (!v) return std::nullopt;
  return c.kind == Condition::Kind::kGe0 ? *v >= 0 : *v == 0;
}

std::string Print(const Condition& c, const Symbols& s) {
  if (!c.p.valid()) return "invalid";
  // Terms with a negative coefficient go to the right-hand side.
  Poly left, right;
  for (const Poly::Term& t : c.p.terms()) {
    Poly one(t.coefficient < 0 ? -t.coefficient : t.coefficient);
    for (Symbol x : t.monomial) {
      if (x == 0) break;
      one = one * Poly::Var(x);
    }
    (t.coefficient < 0 ? right : left) += one;
  }
  return fmt::format("{} {} {}", s.Print(left), c.kind == Condition::Kind::kGe0 ? ">=" : "=",
                     s.Print(right));
}

}  // namespace tenon::base
