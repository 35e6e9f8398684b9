// The lemmas.
//
//   q = floor(n / d), d >= 1:     d q <= n <= d q + d - 1
//   m = x y:                      the rule of signs, and |m| >= |y| where |x| >= 1, both ways round
//   m = x y, y >= 0, p a linear polynomial with x that the question compares with 0:
//                                 p >= 0 implies p y >= 0; p < 0 implies (-p - 1) y >= 0
//   q = floor(n / d), the question compares n with k d for a linear polynomial k:
//                                 the line above for p = k - 1 - q or p = q - k
//   q = floor(n / d), d >= 1, q y occurs, y >= 0 and no term of d:
//                                 (n - d q) y >= 0 and (d - 1 - n + d q) y >= 0
//   x y and z y, y >= 0:          x < z implies x y + y <= z y; x > z the reverse; x = z equality
//
// where y may be a product itself. Each holds for all integers, so asserting it never makes a
// satisfiable question unsatisfiable. They suffice for strides, sizes of merged axes and bounds of
// indices into them; what needs more is `unknown`.
#include "verifier/smt/encode.h"

#include <algorithm>

#include "verifier/nf/quotients.h"

namespace tenon::smt {
namespace {

using base::Monomial;
using base::Poly;
using base::Symbol;

unsigned Degree(const Monomial& m) {
  unsigned d = 0;
  while (d < m.size() && m[d] != 0) ++d;
  return d;
}

Poly Factor(const Monomial& m) {
  Poly p = 1;
  for (const Symbol s : m) {
    if (s != 0) p = p * Poly::Var(s);
  }
  return p;
}

// `m` without its k-th symbol.
Monomial Without(const Monomial& m, unsigned k) {
  Monomial out{};
  unsigned n = 0;
  for (unsigned j = 0; j < m.size() && m[j] != 0; ++j) {
    if (j != k) out[n++] = m[j];
  }
  return out;
}

}  // namespace

z3::expr Encoder::And(const z3::expr_vector& list) {
  if (list.empty()) return context_.bool_val(true);
  return list.size() == 1 ? list[0] : z3::mk_and(list);
}

z3::expr Encoder::Or(const z3::expr_vector& list) {
  if (list.empty()) return context_.bool_val(false);
  return list.size() == 1 ? list[0] : z3::mk_or(list);
}

z3::expr Encoder::Sum(const z3::expr_vector& list) {
  if (list.empty()) return Integer(0);
  return list.size() == 1 ? list[0] : z3::sum(list);
}

z3::expr Encoder::Variable(Symbol s) {
  const auto known = variables_.find(s);
  if (symbols_.kind(s) == base::SymbolKind::kDiv && !closed_divisions_.contains(s)) {
    open_divisions_.insert(s);
  }
  if (known != variables_.end()) return known->second;
  const z3::symbol name = context_.int_symbol(s);
  return variables_.emplace(s, context_.constant(name, context_.int_sort())).first->second;
}

z3::expr Encoder::Product(const Monomial& m) {
  if (m[1] == 0) return Variable(m[0]);
  if (!closed_products_.contains(m)) open_products_.insert(m);
  const auto known = products_.find(m);
  if (known != products_.end()) return known->second;
  // Numbered above all symbols, in order of appearance.
  const z3::symbol name = context_.int_symbol(0x10000 + static_cast<int>(products_.size()));
  return products_.emplace(m, context_.constant(name, context_.int_sort())).first->second;
}

z3::expr Encoder::Of(const Poly& p) {
  z3::expr_vector terms(context_);
  for (const Poly::Term& t : p.terms()) {
    if (t.monomial[0] == 0) {
      terms.push_back(Integer(t.coefficient));
    } else if (t.coefficient == 1) {
      terms.push_back(Product(t.monomial));
    } else {
      terms.push_back(Integer(t.coefficient) * Product(t.monomial));
    }
  }
  return Sum(terms);
}

void Encoder::NoteBound(const base::Condition& c) {
  if (c.kind == base::Condition::Kind::kGe0) compared_.insert(c.p);
  if (c.kind != base::Condition::Kind::kGe0 || c.p.terms().size() > 3) return;
  for (const Poly::Term& t : c.p.terms()) {
    if (t.monomial[1] != 0) return;
  }
  bounds_.insert(c.p);
}

z3::expr Encoder::Of(const base::Condition& c) {
  NoteBound(c);
  const z3::expr p = Of(c.p);
  return c.kind == base::Condition::Kind::kGe0 ? p >= 0 : p == 0;
}

z3::expr Encoder::All(std::span<const base::Condition> all) {
  z3::expr_vector list(context_);
  for (const base::Condition& c : all) list.push_back(Of(c));
  return And(list);
}

z3::expr Encoder::AnyOf(std::span<const nf::Piece> pieces) {
  z3::expr_vector list(context_);
  for (const nf::Piece& p : pieces) list.push_back(All(p.when));
  return Or(list);
}

void Encoder::DivisionLemmas(Symbol s, std::vector<z3::expr>& out) {
  const Poly& d = symbols_.denominator(s);
  const Poly& n = symbols_.numerator(s);
  const Poly rest = n - d * Poly::Var(s);
  const Poly below = d - 1 - rest;
  if (!rest.valid() || !below.valid()) return;
  const z3::expr lemma = Of(rest) >= 0 && Of(below) >= 0;
  out.push_back(d.is_constant() ? lemma : z3::implies(Of(d) >= 1, lemma));
}

void Encoder::RestLemmas(Symbol s, const std::set<Monomial>& products, std::vector<z3::expr>& out) {
  const Poly& d = symbols_.denominator(s);
  const Poly rest = symbols_.numerator(s) - d * Poly::Var(s);
  for (const Monomial& m : products) {
    const auto at = std::find(m.begin(), m.end(), s);
    if (at == m.end()) continue;
    const Monomial y = Without(m, static_cast<unsigned>(at - m.begin()));
    const bool own = std::any_of(d.terms().begin(), d.terms().end(),
                                 [&](const Poly::Term& t) { return t.monomial == y; });
    if (own) continue;  // d q is in what the division itself says.
    const Poly factor = Factor(y), product = rest * factor, below = (d - 1 - rest) * factor;
    if (!product.valid() || !below.valid()) continue;
    if (!used_bounds_.insert({Poly::Var(s), y}).second) continue;
    const z3::expr lemma = Of(product) >= 0 && Of(below) >= 0;
    out.push_back(z3::implies(Product(y) >= 0 && Of(d) >= 1, lemma));
  }
}

void Encoder::SignLemmas(const Monomial& m, std::vector<z3::expr>& out) {
  const z3::expr p = Product(m);
  const unsigned degree = Degree(m);
  for (unsigned k = 0; k < degree; ++k) {
    if (k > 0 && m[k] == m[k - 1]) continue;
    const z3::expr x = Variable(m[k]), y = Product(Without(m, k));
    const bool dim = symbols_.kind(m[k]) == base::SymbolKind::kDim;  // At least 1.
    out.push_back(z3::implies(dim ? y >= 0 : (x >= 1 && y >= 0), p >= y));
    out.push_back(z3::implies(dim ? y <= 0 : (x >= 1 && y <= 0), p <= y));
    if (dim) continue;
    out.push_back(z3::implies(x == 0, p == 0));
    out.push_back(z3::implies(x <= -1 && y >= 0, p <= -y));
    out.push_back(z3::implies(x <= -1 && y <= 0, p >= -y));
  }
}

void Encoder::OrderLemmas(const Monomial& a, const Monomial& b, std::vector<z3::expr>& out) {
  // a = x y and b = z y for single symbols x and z.
  const unsigned da = Degree(a), db = Degree(b);
  if (da != db) return;
  for (unsigned i = 0; i < da; ++i) {
    for (unsigned j = 0; j < db; ++j) {
      const Monomial y = Without(a, i);
      if (a[i] == b[j] || y != Without(b, j)) continue;
      const z3::expr x = Variable(a[i]), z = Variable(b[j]), shared = Product(y);
      const z3::expr xy = Product(a), zy = Product(b);
      out.push_back(z3::implies(x < z && shared >= 0, xy + shared <= zy));
      out.push_back(z3::implies(x > z && shared >= 0, xy >= zy + shared));
      out.push_back(z3::implies(x == z, xy == zy));
      return;
    }
  }
}

void Encoder::BoundLemmas(std::vector<z3::expr>& out) {
  const std::set<Monomial> products = closed_products_;  // Of the question, not of these lemmas.
  for (const Symbol s : std::set<Symbol>(closed_divisions_)) RestLemmas(s, products, out);
  for (const Poly& p : bounds_) {
    for (const Poly::Term& t : p.terms()) {
      const Symbol x = t.monomial[0];
      if (x == 0) continue;
      for (const Monomial& m : products) {
        const auto at = std::find(m.begin(), m.end(), x);
        if (at == m.end()) continue;
        const Monomial y = Without(m, static_cast<unsigned>(at - m.begin()));
        if (!used_bounds_.insert({p, y}).second) continue;
        const Poly factor = Factor(y), product = p * factor;
        const Poly negative = (-p - 1) * factor;
        if (!product.valid() || !negative.valid()) continue;
        const z3::expr positive = Product(y) >= 0, holds = Of(p) >= 0;
        out.push_back(z3::implies(positive && holds, Of(product) >= 0));
        out.push_back(z3::implies(positive && !holds, Of(negative) >= 0));
      }
    }
  }
}

void Encoder::NoteQuotients() {
  for (const Symbol s : closed_divisions_) {
    for (const Poly& p : compared_) {
      for (const Poly& bound : nf::QuotientBounds(symbols_, s, p)) bounds_.insert(bound);
    }
  }
}

void Encoder::Close(std::vector<z3::expr>& out) {
  while (!open_divisions_.empty() || !open_products_.empty()) {
    if (!open_divisions_.empty()) {
      const Symbol s = *open_divisions_.begin();
      open_divisions_.erase(open_divisions_.begin());
      closed_divisions_.insert(s);
      DivisionLemmas(s, out);
      continue;
    }
    const Monomial m = *open_products_.begin();
    open_products_.erase(open_products_.begin());
    for (const Monomial& other : closed_products_) OrderLemmas(m, other, out);
    closed_products_.insert(m);
    SignLemmas(m, out);
  }
}

std::vector<z3::expr> Encoder::TakeLemmas() {
  std::vector<z3::expr> out;
  Close(out);
  NoteQuotients();
  BoundLemmas(out);
  Close(out);
  return out;
}

void Encoder::Mark() {
  marked_divisions_ = closed_divisions_;
  marked_products_ = closed_products_;
  marked_bounds_ = bounds_;
  marked_compared_ = compared_;
  marked_used_bounds_ = used_bounds_;
}

void Encoder::Restore() {
  closed_divisions_ = marked_divisions_;
  closed_products_ = marked_products_;
  bounds_ = marked_bounds_;
  compared_ = marked_compared_;
  used_bounds_ = marked_used_bounds_;
}

std::map<Symbol, std::int64_t> Encoder::Values(const z3::model& model) {
  std::map<Symbol, std::int64_t> out;
  for (const auto& [s, variable] : variables_) {
    const base::SymbolKind kind = symbols_.kind(s);
    if (kind != base::SymbolKind::kDim && kind != base::SymbolKind::kAttr) continue;
    std::int64_t value = 0;
    if (model.eval(variable, true).is_numeral_i64(value)) out[s] = value;
  }
  return out;
}

}  // namespace tenon::smt
