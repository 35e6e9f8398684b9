// Reshape.
//
// Both shapes are cut, from the left, into the shortest blocks of axes with equal products (as
// polynomials; axes of extent 1 take no part). Equal products of all blocks before make the
// row-major number of a position the tuple of its blocks' numbers, so each block stands for itself.
// Within a block the number L of the output position is a polynomial; the input position is L
// itself (several axes merged into one), or the digits of L (one axis split), or both. A digit is
// exact when the facts show that the rest is below its extent; else the index is split by the plan;
// else it is an opaque floor division, which is still right and rarely provable.
#include <algorithm>

#include "verifier/nf/index_plan.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

using ops::Short;

// The monomial of `a` without the factors of `b`, as a polynomial; nothing when b does not divide
// a.
std::optional<Poly> Quotient(const Poly::Term& a, const Poly::Term& b) {
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  std::vector<Symbol> left;
  for (Symbol s : a.monomial) {
    if (s != 0) left.push_back(s);
  }
  for (Symbol s : b.monomial) {
    if (s == 0) break;
    const auto at = std::find(left.begin(), left.end(), s);
    if (at == left.end()) return std::nullopt;
    left.erase(at);
  }
  Poly q(a.coefficient / b.coefficient);
  for (Symbol s : left) q = q * Poly::Var(s);
  return q;
}

Poly Product(const Short<Poly>& extents, const std::vector<int>& axes, std::size_t first,
             std::size_t last) {
  Poly p = 1;
  for (std::size_t k = first; k < last; ++k) p = p * extents[axes[k]];
  return Valid(p);
}

std::vector<int> Axes(const Short<Poly>& extents) {
  std::vector<int> out;
  for (int a = 0; a < extents.size(); ++a) {
    if (!extents[a].is_constant(1)) out.push_back(a);
  }
  return out;
}

// The leading digit of `number` when `inner` is what the others count up to.
Division Digit(Session& s, IndexPlan& plan, const Guards& context, const Poly& number,
               const Poly& inner) {
  Division d = Divide(number, inner);
  Valid(d.rest);
  const Guards small{base::Ge(d.rest, Poly(0)), base::Lt(d.rest, inner)};
  if (s.facts.ImpliedAll(context, small)) return d;
  // An index that is itself made of digits: its multiple by m has a digit at inner / m.
  for (const Poly::Term& t : d.rest.terms()) {
    for (Symbol c : t.monomial) {
      if (c == 0) break;
      const auto multiple = Quotient(t, Poly::Var(c).terms()[0]);
      if (!multiple || multiple->Mentions(c, s.symbols)) continue;
      const Division below = Divide(inner, *multiple);
      if (below.rest.is_constant(0) && plan.Split(s, c, below.quotient)) throw Replan{};
    }
  }
  if (!s.facts.Implied(context, base::Ge(inner, Poly(1)))) {
    throw Unsupported("a reshape divides by an extent that may be 0");
  }
  const Poly q = Valid(s.symbols.FloorDiv(d.rest, inner));
  return {Valid(d.quotient + q), Valid(d.rest - q * inner)};
}

}  // namespace

Division Divide(const Poly& p, const Poly& divisor) {
  Division d{Poly(0), p};
  if (divisor.terms().empty()) return d;
  const Poly::Term& lead = divisor.terms().back();
  bool changed = true;
  while (changed && d.rest.valid()) {
    changed = false;
    // The largest monomial first: subtracting a multiple of the divisor adds smaller ones only.
    for (std::size_t k = d.rest.terms().size(); k-- > 0;) {
      if (const auto q = Quotient(d.rest.terms()[k], lead)) {
        if (q->terms().empty()) continue;
        d.quotient += *q;
        d.rest = d.rest - *q * divisor;
        changed = true;
        break;
      }
    }
  }
  return d;
}

IndexPlan::Made IndexPlan::Make(Session& s, Side side, const Poly& extent, base::SymbolKind kind) {
  const Key key{side, next_[side]++};
  auto planned = digits_.find(key);
  if (planned == digits_.end()) planned = digits_.emplace(key, std::vector<Poly>{extent}).first;
  Made made;
  made.value = 0;
  const std::vector<Poly>& extents = planned->second;
  Poly product = 1;
  for (const Poly& e : extents) product = product * e;
  // A refined plan may change which branches are read, and with them the numbering.
  if (!(product == extent)) throw Unsupported("an index changed its extent between two readings");
  for (std::size_t part = 0; part < extents.size(); ++part) {
    const Symbol symbol = s.Fresh(kind);
    made_[symbol] = {key, part, extents[part]};
    made.symbols.push_back(symbol);
    made.value = Valid(made.value * extents[part] + Poly::Var(symbol));
    AddGuard(made.range, base::Ge(Poly::Var(symbol), Poly(0)));
    AddGuard(made.range, base::Lt(Poly::Var(symbol), extents[part]));
  }
  return made;
}

bool IndexPlan::Split(Session& s, Symbol symbol, const Poly& inner) {
  const auto found = made_.find(symbol);
  if (found == made_.end()) return false;
  const Division d = Divide(found->second.extent, inner);
  if (!d.rest.is_constant(0) || d.quotient.is_constant(1)) return false;
  // Both digits must have a non-empty range for the digits to cover all of the index.
  if (!s.facts.ImpliedAll({}, {base::Ge(d.quotient, Poly(1)), base::Ge(inner, Poly(1))})) {
    return false;
  }
  std::vector<Poly>& extents = digits_[found->second.key];
  const auto at = extents.begin() + static_cast<std::ptrdiff_t>(found->second.part);
  *at = inner;
  extents.insert(at, d.quotient);
  return true;
}

Short<Poly> RowMajorPosition(Session& s, IndexPlan& plan, const Guards& context,
                             const Short<Poly>& from, const Short<Poly>& to,
                             const Short<Poly>& at) {
  const std::vector<int> inputs = Axes(from), outputs = Axes(to);
  Short<Poly> position = Short<Poly>::Filled(from.size(), Poly(0));
  std::size_t i = 0, j = 0;
  while (i < inputs.size() || j < outputs.size()) {
    // The shortest block: inputs [i, a) and outputs [j, b).
    std::size_t a = 0, b = 0;
    for (std::size_t x = i + 1; a == 0 && x <= inputs.size(); ++x) {
      for (std::size_t y = j + 1; a == 0 && y <= outputs.size(); ++y) {
        if (Product(from, inputs, i, x) == Product(to, outputs, j, y)) {
          a = x;
          b = y;
        }
      }
    }
    if (a == 0) throw Unsupported("a reshape whose axes do not match in blocks of equal products");
    Poly number = 0;
    for (std::size_t y = j; y < b; ++y) {
      number = Valid(number * to[outputs[y]] + at[outputs[y]]);
    }
    for (std::size_t x = i; x + 1 < a; ++x) {
      const Division d = Digit(s, plan, context, number, Product(from, inputs, x + 1, a));
      position[inputs[x]] = d.quotient;
      number = d.rest;
    }
    position[inputs[a - 1]] = number;
    i = a;
    j = b;
  }
  return position;
}

}  // namespace tenon::nf
