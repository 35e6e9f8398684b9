#include "verifier/nf/term.h"

#include <algorithm>

#include "verifier/nf/unsupported.h"

namespace tenon::nf {

bool Before(const Atom& a, const Atom& b) {
  if (a.head != b.head) return a.head < b.head;
  return std::lexicographical_compare(a.index.begin(), a.index.end(), b.index.begin(),
                                      b.index.end(), Poly::Before);
}

bool Term::binds(Symbol s) const {
  return std::find(binders.begin(), binders.end(), s) != binders.end();
}

bool Term::is_plain() const {
  return binders.empty() && guards.empty() && count.is_constant(1) && size.is_constant(1);
}

Nf Constant(const Rational& value) {
  if (value.is_zero()) return {};
  Term t;
  t.coefficient = value;
  return {t};
}

Nf Access(Head head, std::vector<Poly> index) {
  for (const Poly& p : index) Valid(p);
  Term t;
  Atom a;
  a.head = head;
  a.index = std::move(index);
  t.atoms.push_back(std::move(a));
  return {t};
}

Nf Apply(ops::Fn fn, Nf body) {
  Term t;
  Atom a;
  a.kind = Atom::Kind::kFn;
  a.fn = fn;
  a.body = std::make_shared<const Nf>(std::move(body));
  t.atoms.push_back(std::move(a));
  return {t};
}

Nf Plus(Nf a, const Nf& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Nf Scale(Nf a, const Rational& by) {
  if (by.is_zero()) return {};
  for (Term& t : a) t.coefficient = t.coefficient * by;
  return a;
}

Nf Guarded(Nf a, const Guards& guards) {
  Nf out;
  for (Term& t : a) {
    bool possible = true;
    for (const Condition& c : guards) possible = possible && AddGuard(t.guards, c);
    if (possible) out.push_back(std::move(t));
  }
  return out;
}

bool AddGuard(Guards& guards, const Condition& c) {
  Valid(c.p);
  const Condition normal = base::Normal(c);
  Valid(normal.p);
  if (const auto decided = base::Trivial(normal)) return *decided;
  if (std::find(guards.begin(), guards.end(), normal) == guards.end()) guards.push_back(normal);
  return true;
}

Guards Joined(const Guards& a, const Guards& b) {
  Guards all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

const Poly& Valid(const Poly& p) {
  if (!p.valid()) throw Unsupported("a size or index overflows");
  return p;
}

void CollectBinders(const Term& t, std::vector<Symbol>& out) {
  out.insert(out.end(), t.binders.begin(), t.binders.end());
  for (const Atom& a : t.atoms) {
    out.insert(out.end(), a.binders.begin(), a.binders.end());
    if (a.body != nullptr) CollectBinders(*a.body, out);
  }
}

void CollectBinders(const Nf& nf, std::vector<Symbol>& out) {
  for (const Term& t : nf) CollectBinders(t, out);
}

std::optional<LinearForm> LinearIn(const Poly& p, Symbol symbol, const base::Symbols& symbols) {
  LinearForm form;
  for (const Poly::Term& t : p.terms()) {
    Poly without(t.coefficient);
    int power = 0;
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      if (s == symbol) {
        ++power;
        continue;
      }
      if (symbols.kind(s) == base::SymbolKind::kDiv && Poly::Var(s).Mentions(symbol, symbols)) {
        return std::nullopt;
      }
      without = without * Poly::Var(s);
    }
    if (power > 1) return std::nullopt;
    (power == 1 ? form.coefficient : form.rest) += without;
  }
  return form;
}

}  // namespace tenon::nf
