#include "interop/sizes.h"

#include <algorithm>
#include <vector>

namespace tenon::interop {

using base::Monomial;
using base::Poly;
using base::Symbol;

namespace {

Poly Product(const Monomial& monomial) {
  Poly p = 1;
  for (const Symbol s : monomial) {
    if (s != 0) p = p * Poly::Var(s);
  }
  return p;
}

// The symbols (as often as they occur) that divide every term. Sizes are at least 1, so an equation
// may be divided by them.
std::vector<Symbol> CommonFactor(const Poly& p) {
  std::vector<Symbol> common;
  bool first = true;
  for (const Poly::Term& term : p.terms()) {
    std::vector<Symbol> factors;
    for (const Symbol s : term.monomial) {
      if (s != 0) factors.push_back(s);
    }
    if (first) common = factors;
    first = false;
    std::vector<Symbol> both;
    std::set_intersection(common.begin(), common.end(), factors.begin(), factors.end(),
                          std::back_inserter(both), std::greater<>());
    common = both;
  }
  return common;
}

Poly Divided(const Poly& p, const std::vector<Symbol>& factors) {
  Poly out;
  for (const Poly::Term& term : p.terms()) {
    Monomial left = term.monomial;
    for (const Symbol s : factors) *std::find(left.begin(), left.end(), s) = 0;
    out = out + Poly(term.coefficient) * Product(left);
  }
  return out;
}

bool Positive(const Poly& p) {
  return p.valid() && !p.terms().empty() &&
         std::all_of(p.terms().begin(), p.terms().end(),
                     [](const Poly::Term& t) { return t.coefficient > 0; });
}

}  // namespace

Symbol Sizes::Add(std::string_view name, base::SymbolKind kind) { return symbols_.Add(name, kind); }

void Sizes::Reset() {
  values_.clear();
  contradiction_ = false;
}

Poly Sizes::Resolve(const Poly& p) { return symbols_.Substitute(p, values_); }

bool Sizes::Plain(const Poly& p) const {
  std::vector<Symbol> symbols;
  p.CollectSymbols(symbols);
  return p.valid() &&
         std::all_of(symbols.begin(), symbols.end(), [&](Symbol s) { return s < symbols_.size(); });
}

bool Sizes::Equate(const Poly& a, const Poly& b) {
  if (a == b) return true;
  if (!Plain(a) || !Plain(b)) return false;
  Poly p = Resolve(a) - Resolve(b);
  if (!p.valid()) return false;
  if (p.is_constant()) {
    contradiction_ = contradiction_ || !p.is_constant(0);
    return p.is_constant(0);
  }
  p = Divided(p, CommonFactor(p));
  // The symbol that came last goes.
  std::vector<Symbol> symbols;
  p.CollectSymbols(symbols);
  std::sort(symbols.begin(), symbols.end(), std::greater<>());
  for (const Symbol s : symbols) {
    const auto coefficient = p.LinearCoefficient(s, symbols_);
    if (!coefficient || (*coefficient != 1 && *coefficient != -1)) continue;
    const Poly rest = (Poly::Var(s) * Poly(*coefficient) - p) * Poly(*coefficient);
    if (!Positive(rest)) continue;
    const base::Symbols::Substitution step = {{s, rest}};
    for (auto& [symbol, value] : values_) value = symbols_.Substitute(value, step);
    values_.emplace(s, rest);
    ++solved_;
    return true;
  }
  return false;
}

bool Sizes::Always(const base::Condition& c) const {
  if (c.kind != base::Condition::Kind::kGe0 || !Plain(c.p)) return false;
  std::int64_t at_ones = 0;  // The least value, if no symbol lowers it.
  for (const Poly::Term& term : c.p.terms()) {
    at_ones += term.coefficient;
    if (term.coefficient < 0 && !(Product(term.monomial) == Poly(1))) return false;
  }
  return at_ones >= 0;
}

}  // namespace tenon::interop
