// N1, N2 and N4 of the normal form.
//
// N1 removes guards that the context makes trivial, solves equalities for binders (one-hot kernels
// and identity matrices disappear here), and drops terms that never hold. N2 normalises the bodies
// of functions; a guard in there that mentions no inner binder and that the context does not decide
// splits the outer term, so that Relu of a Concat becomes guarded Relus. N4 gives binders ranges
// that start at 0 and drops guards that follow from the others.
//
// Cost: one query for each guard that neither the cache nor a dim's lower bound decides.
#include "verifier/nf/normalize.h"

#include <algorithm>

#include "verifier/nf/index_plan.h"

namespace tenon::nf {

using base::Condition;
using base::SymbolKind;
using Kind = Condition::Kind;

namespace {

bool Contains(const Guards& guards, const Condition& c) {
  return std::find(guards.begin(), guards.end(), c) != guards.end();
}

// An equality guard solved for a binder of `t`: removes both. False when there is none.
bool SolveOneBinder(Session& s, Term& t, bool& possible) {
  for (std::size_t g = 0; g < t.guards.size(); ++g) {
    if (t.guards[g].kind != Kind::kEq0) continue;
    for (std::size_t b = 0; b < t.binders.size(); ++b) {
      const Symbol binder = t.binders[b];
      const auto c = t.guards[g].p.LinearCoefficient(binder, s.symbols);
      if (c != 1 && c != -1) continue;
      const Poly& p = t.guards[g].p;
      const Poly value = Poly::Var(binder) - (*c == 1 ? p : -p);
      t.guards.erase(t.guards.begin() + static_cast<std::ptrdiff_t>(g));
      t.binders.erase(t.binders.begin() + static_cast<std::ptrdiff_t>(b));
      if (auto u = s.Substitute(t, {{binder, value}})) {
        t = *std::move(u);
      } else {
        possible = false;
      }
      return true;
    }
  }
  return false;
}

}  // namespace

bool Normalizer::Clean(Term& t, const Guards& outer) {
  bool possible = true;
  while (possible && SolveOneBinder(s_, t, possible)) {
  }
  if (!possible || t.coefficient.is_zero() || t.count.is_constant(0)) return false;
  Guards open;
  for (const Condition& c : t.guards) {
    if (!Contains(outer, c) && !AddGuard(open, c)) return false;
  }
  t.guards = std::move(open);
  return t.guards.empty() || !s_.facts.Unsat(Joined(outer, t.guards));
}

Nf Normalizer::Normalize(const Nf& nf, const Guards& outer) {
  std::vector<Term> todo(nf.rbegin(), nf.rend());
  Nf out;
  while (!todo.empty()) {
    Term t = std::move(todo.back());
    todo.pop_back();
    s_.Step();
    if (!Clean(t, outer)) continue;
    const Guards context = Joined(outer, t.guards);
    bool again = false;
    std::vector<Atom> atoms;
    for (std::size_t k = 0; k < t.atoms.size() && !again; ++k) {
      if (t.atoms[k].is_access()) {
        atoms.push_back(t.atoms[k]);
        continue;
      }
      Outcome o = t.atoms[k].kind == Atom::Kind::kFn ? Function(t.atoms[k], context)
                                                     : Maximum(t.atoms[k], context);
      switch (o.kind) {
        case Outcome::Kind::kAccess:
          atoms.push_back(std::move(o.atom));
          break;
        case Outcome::Kind::kSplit: {
          again = true;
          std::vector<Condition> cases = base::Negate(o.condition);
          cases.push_back(o.condition);
          for (const Condition& c : cases) {
            todo.push_back(t);
            if (!AddGuard(todo.back().guards, c)) todo.pop_back();
          }
          break;
        }
        case Outcome::Kind::kExpand: {
          again = true;
          Term rest = t;
          rest.atoms.erase(rest.atoms.begin() + static_cast<std::ptrdiff_t>(k));
          for (Term& u : s_.Product({rest}, o.nf)) todo.push_back(std::move(u));
          break;
        }
      }
    }
    if (again) continue;
    t.atoms = std::move(atoms);
    if (const auto without = SquaredRoot(t)) {
      todo.insert(todo.end(), without->begin(), without->end());
      continue;
    }
    Multiply(t, outer);
    if (t.coefficient.is_zero()) continue;
    out.push_back(std::move(t));
  }
  return Merged(out);
}

// SUM x_k * 1 / SUM x_k = 1 for a sum that is positive: the factor is removed together with the
// bound variables. A sum counts as the same when it lifts to the same access.
bool Normalizer::CancelSum(Term& t, const Guards& outer) {
  if (t.binders.empty()) return false;
  for (std::size_t k = 0; k < t.atoms.size(); ++k) {
    const Atom inverse = t.atoms[k];
    const HeadInfo head = s_.heads[static_cast<std::size_t>(inverse.head)];
    const bool is_inverse =
        head.kind == HeadInfo::Kind::kFunction && head.fn == ops::Fn::kRecip && head.positive;
    if (!is_inverse || head.body.size() != 1) continue;
    base::Symbols::Substitution arguments;
    for (std::size_t q = 0; q < inverse.index.size(); ++q) {
      arguments[s_.Param(static_cast<int>(q))] = inverse.index[q];
    }
    const auto body = s_.Substitute(s_.Renamed(head.body[0]), arguments);
    if (!body) continue;
    // What depends on the bound variables must be that body.
    Term inside, outside = t;
    inside.binders = t.binders;
    outside.binders.clear();
    outside.guards.clear();
    outside.atoms.clear();
    for (const Condition& c : t.guards) {
      (s_.Mentions(c.p, t.binders) ? inside : outside).guards.push_back(c);
    }
    for (std::size_t j = 0; j < t.atoms.size(); ++j) {
      if (j == k) continue;
      const auto& index = t.atoms[j].index;
      const bool bound = std::any_of(index.begin(), index.end(),
                                     [&](const Poly& p) { return s_.Mentions(p, t.binders); });
      (bound ? inside : outside).atoms.push_back(t.atoms[j]);
    }
    if (s_.Mentions(t.count, t.binders) || inside.atoms.size() != body->atoms.size()) continue;
    Canonical(inside, outer);
    Term other = *body;
    Canonical(other, outer);
    if (!(Lift(HeadInfo::Kind::kSum, ops::Fn::kRelu, {inside}) ==
          Lift(HeadInfo::Kind::kSum, ops::Fn::kRelu, {other}))) {
      continue;
    }
    t = std::move(outside);
    return true;
  }
  return false;
}

// Laws within one product: x * 1/x = 1 where x is positive, x * Relu(x) = Relu(x)^2, and the size
// that divides against the count that multiplies.
void Normalizer::Multiply(Term& t, const Guards& outer) {
  for (std::size_t i = 0; i < t.atoms.size(); ++i) {
    const HeadInfo& h = s_.heads[static_cast<std::size_t>(t.atoms[i].head)];
    if (h.kind == HeadInfo::Kind::kRecipOf) {
      if (!s_.heads[static_cast<std::size_t>(h.of)].positive &&
          s_.fault != Fault::kCancelReciprocals) {
        continue;
      }
      Atom inverse = t.atoms[i];
      inverse.head = h.of;
      const auto at = std::find(t.atoms.begin(), t.atoms.end(), inverse);
      if (at == t.atoms.end()) continue;
      const auto other = at - t.atoms.begin();
      const auto own = static_cast<std::ptrdiff_t>(i);
      t.atoms.erase(t.atoms.begin() + std::max(own, other));
      t.atoms.erase(t.atoms.begin() + std::min(own, other));
      i = static_cast<std::size_t>(-1);
    } else if (h.kind == HeadInfo::Kind::kFunction && h.fn == ops::Fn::kRelu &&
               h.body.size() == 1 && h.body[0].is_plain() && h.body[0].coefficient == 1 &&
               h.body[0].atoms.size() == 1) {
      base::Symbols::Substitution arguments;
      for (std::size_t k = 0; k < t.atoms[i].index.size(); ++k) {
        arguments[s_.Param(static_cast<int>(k))] = t.atoms[i].index[k];
      }
      const Atom x = s_.Substitute(h.body[0].atoms[0], arguments);
      for (Atom& a : t.atoms) {
        if (a == x) a = t.atoms[i];
      }
    }
  }
  if (CancelSum(t, outer)) return Multiply(t, outer);
  if (!t.size.is_constant(1)) {
    const Division d = Divide(t.count, t.size);
    if (d.rest.is_constant(0)) {
      t.count = d.quotient;
      t.size = 1;
    } else {
      const Division e = Divide(t.size, t.count);
      if (e.rest.is_constant(0)) {
        t.size = e.quotient;
        t.count = 1;
      }
    }
  }
  if (t.count.is_constant()) {
    t.coefficient = t.coefficient * Rational(t.count.constant());
    t.count = 1;
  }
  std::sort(t.atoms.begin(), t.atoms.end(), Before);
}

// Terms without binders that differ in their coefficients only become one.
Nf Normalizer::Merged(const Nf& terms) {
  Nf out;
  for (const Term& t : terms) {
    Guards sorted = t.guards;
    std::sort(sorted.begin(), sorted.end(), base::Before);
    const auto same = std::find_if(out.begin(), out.end(), [&](const Term& u) {
      return t.binders.empty() && u.binders.empty() && u.count == t.count && u.size == t.size &&
             u.guards == sorted && u.atoms == t.atoms;
    });
    if (same == out.end()) {
      out.push_back(t);
      out.back().guards = std::move(sorted);
    } else {
      same->coefficient = same->coefficient + t.coefficient;
    }
  }
  std::erase_if(out, [](const Term& t) { return t.coefficient.is_zero(); });
  return out;
}

std::optional<Condition> Normalizer::Undecided(Nf& nf, const std::vector<Symbol>& own,
                                               const Guards& context) {
  Nf out;
  for (const Term& t : nf) {
    Term kept = t;
    kept.guards.clear();
    bool possible = true;
    for (const Condition& c : t.guards) {
      if (s_.Mentions(c.p, t.binders) || s_.Mentions(c.p, own)) {
        kept.guards.push_back(c);
        continue;
      }
      const auto decided = s_.facts.Decide(context, c);
      if (!decided) return c;
      possible = possible && *decided;
    }
    if (possible) out.push_back(std::move(kept));
  }
  nf = Merged(out);
  return std::nullopt;
}

void Normalizer::Trim(Term& t, const Guards& context) {
  std::sort(t.guards.begin(), t.guards.end(), base::Before);
  for (std::size_t k = 0; k < t.guards.size();) {
    Guards others = context;
    for (std::size_t j = 0; j < t.guards.size(); ++j) {
      if (j != k) others.push_back(t.guards[j]);
    }
    if (s_.facts.Implied(others, t.guards[k])) {
      t.guards.erase(t.guards.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      ++k;
    }
  }
}

void Normalizer::Canonical(Term& t, const Guards& context) {
  Trim(t, context);
  const std::vector<Symbol> binders = t.binders;
  for (Symbol b : binders) {
    // The lower bounds that mention dims and attributes only.
    std::vector<Poly> lower;
    for (const Condition& c : t.guards) {
      if (c.kind != Kind::kGe0 || c.p.LinearCoefficient(b, s_.symbols) != 1) continue;
      const Poly bound = Poly::Var(b) - c.p;
      if (s_.IsGlobal(bound)) lower.push_back(bound);
    }
    if (lower.size() != 1) continue;
    if (s_.facts.Implied(Joined(context, t.guards), base::Ge(lower[0], Poly::Var(b)))) {
      // One value only.
      std::erase(t.binders, b);
      if (auto u = s_.Substitute(t, {{b, lower[0]}})) t = *std::move(u);
      Trim(t, context);
    } else if (!lower[0].is_constant(0)) {
      if (auto u = s_.Substitute(t, {{b, Poly::Var(b) + lower[0]}})) t = *std::move(u);
    }
  }
}

}  // namespace tenon::nf
