// N5: lifting.
//
// f(body) becomes an access head[arguments]: every maximal part of an index that depends on outer
// variables is an argument, the body over parameters in their place is E, and the head is f applied
// to E. An existing head is taken when its body is E for ALL values of the parameters; then equal
// heads denote equal functions, and different ones are claimed to be nothing. The body keeps no
// trace of where it was lifted, which is what lets two places share it.
//
// Cost: one comparison for each head of the same function and number of parameters, most decided by
// spelling: binders are named by position and guards sorted, so equal bodies are usually identical.
#include <algorithm>

#include "verifier/nf/compare.h"
#include "verifier/nf/normalize.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

using base::SymbolKind;
using base::Symbols;

// The polynomial of one monomial.
Poly Single(const Poly::Term& t) {
  Poly p(t.coefficient);
  for (Symbol s : t.monomial) {
    if (s == 0) break;
    p = p * Poly::Var(s);
  }
  return p;
}

// Turns indices over outer variables into arguments.
class Parameters {
 public:
  explicit Parameters(Session& s) : s_(s) {}

  // An index: its outer part, constants included, is an argument if it has outer variables.
  Poly OfIndex(const Poly& p, const std::vector<Symbol>& local) {
    const auto [outer, rest] = Cut(p, local);
    return s_.IsGlobal(outer) ? p : Argument(outer) + rest;
  }

  // A guard or count: its outer part is written in the arguments there are, as far as it goes.
  Poly OfGuard(const Poly& p, const std::vector<Symbol>& local) {
    auto [outer, rest] = Cut(p, local);
    for (std::size_t k = 0; k < arguments_.size() && !s_.IsGlobal(outer); ++k) {
      if (const auto factor = Occurrences(arguments_[k], outer)) {
        outer = Valid(outer - Poly(*factor) * arguments_[k]);
        rest = Valid(rest + Poly(*factor) * Poly::Var(s_.Param(static_cast<int>(k))));
      }
    }
    return s_.IsGlobal(outer) ? outer + rest : Argument(outer) + rest;
  }

  const std::vector<Poly>& arguments() const { return arguments_; }

 private:
  // The monomials without local symbols, and those with.
  std::pair<Poly, Poly> Cut(const Poly& p, const std::vector<Symbol>& local) {
    Poly outer, rest;
    for (const Poly::Term& t : p.terms()) {
      const Poly one = Single(t);
      if (!s_.Mentions(one, local)) {
        outer += one;
        continue;
      }
      rest += HasOuter(one, local) ? OfMixed(t, local) : one;
    }
    return {Valid(outer), Valid(rest)};
  }

  bool HasOuter(const Poly& p, const std::vector<Symbol>& local) const {
    std::vector<Symbol> all;
    p.CollectSymbols(all, &s_.symbols);
    return std::any_of(all.begin(), all.end(), [&](Symbol x) {
      return s_.symbols.kind(x) > SymbolKind::kDiv &&
             std::find(local.begin(), local.end(), x) == local.end();
    });
  }

  // A product with both local and outer variables: its outer factors are arguments, and so are the
  // outer parts inside of its divisions.
  Poly OfMixed(const Poly::Term& t, const std::vector<Symbol>& local) {
    Poly out(t.coefficient);
    for (const Symbol x : t.monomial) {
      if (x == 0) break;
      const Poly factor = Poly::Var(x);
      if (!HasOuter(factor, local)) {
        out = out * factor;
      } else if (!s_.Mentions(factor, local)) {
        out = out * Argument(factor);
      } else {
        // Copies: new symbols move the table.
        const Poly numerator = s_.symbols.numerator(x), denominator = s_.symbols.denominator(x);
        const Poly n = OfIndex(numerator, local);
        out = out * s_.symbols.FloorDiv(n, OfIndex(denominator, local));
      }
    }
    return out;
  }

  Poly Argument(const Poly& value) {
    const auto at = std::find(arguments_.begin(), arguments_.end(), value);
    const auto k = at - arguments_.begin();
    if (at == arguments_.end()) arguments_.push_back(value);
    return Poly::Var(s_.Param(static_cast<int>(k)));
  }

  // How often `argument` goes into `p`, by its first variable part with coefficient +-1.
  std::optional<std::int64_t> Occurrences(const Poly& argument, const Poly& p) {
    for (const Poly::Term& t : argument.terms()) {
      if ((t.coefficient != 1 && t.coefficient != -1) || s_.IsGlobal(Single(t))) continue;
      for (const Poly::Term& u : p.terms()) {
        if (u.monomial == t.monomial) return u.coefficient * t.coefficient;
      }
    }
    return std::nullopt;
  }

  Session& s_;
  std::vector<Poly> arguments_;
};

// Equal to the last sign.
bool SameSpelling(const Nf& a, const Nf& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Term& x, const Term& y) {
    return x.coefficient == y.coefficient && x.count == y.count && x.size == y.size &&
           x.binders == y.binders && x.guards == y.guards && x.atoms == y.atoms;
  });
}

Term WithLocalBinders(Session& s, const Term& t) {
  Symbols::Substitution by;
  for (std::size_t k = 0; k < t.binders.size(); ++k) {
    by[t.binders[k]] = Poly::Var(s.LocalBinder(static_cast<int>(k)));
  }
  Term out = t;
  for (std::size_t k = 0; k < t.binders.size(); ++k) {
    out.binders[k] = s.LocalBinder(static_cast<int>(k));
  }
  out.count = s.Substitute(t.count, by);
  for (base::Condition& c : out.guards) c = base::Normal({c.kind, s.Substitute(c.p, by)});
  for (Atom& a : out.atoms) a = s.Substitute(a, by);
  std::sort(out.guards.begin(), out.guards.end(), base::Before);
  return out;
}

// The part of an index that does not depend on the term's own binders.
Poly OuterPart(const Session& s, const Poly& p, const std::vector<Symbol>& binders) {
  Poly out;
  for (const Poly::Term& t : p.terms()) {
    const Poly one = Single(t);
    if (!s.Mentions(one, binders)) out += one;
  }
  return out;
}

}  // namespace

bool CanonicalBefore(const Session& s, const Term& a, const Term& b) {
  const auto by_head = [](const Atom& x, const Atom& y) { return x.head < y.head; };
  for (std::size_t k = 0; k < a.atoms.size() && k < b.atoms.size(); ++k) {
    if (by_head(a.atoms[k], b.atoms[k])) return true;
    if (by_head(b.atoms[k], a.atoms[k])) return false;
  }
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() < b.atoms.size();
  if (a.binders.size() != b.binders.size()) return a.binders.size() < b.binders.size();
  if (!(a.coefficient.Abs() == b.coefficient.Abs())) {
    return a.coefficient.Abs() < b.coefficient.Abs();
  }
  for (std::size_t k = 0; k < a.atoms.size(); ++k) {
    for (std::size_t q = 0; q < a.atoms[k].index.size(); ++q) {
      const Poly x = OuterPart(s, a.atoms[k].index[q], a.binders);
      const Poly y = OuterPart(s, b.atoms[k].index[q], b.binders);
      if (Poly::Before(x, y)) return true;
      if (Poly::Before(y, x)) return false;
    }
  }
  return false;
}

Nf Normalizer::Collected(const Nf& nf) {
  Nf out, spelled;
  for (const Term& t : nf) {
    Term local = WithLocalBinders(s_, t);
    local.coefficient = 1;
    const auto same = std::find_if(spelled.begin(), spelled.end(),
                                   [&](const Term& u) { return SameSpelling({u}, {local}); });
    if (same == spelled.end()) {
      spelled.push_back(std::move(local));
      out.push_back(t);
    } else {
      Term& first = out[static_cast<std::size_t>(same - spelled.begin())];
      first.coefficient = first.coefficient + t.coefficient;
    }
  }
  std::erase_if(out, [](const Term& t) { return t.coefficient.is_zero(); });
  return out;
}

Atom Normalizer::Lift(HeadInfo::Kind kind, ops::Fn fn, const Nf& inner) {
  Nf sorted = inner;
  for (Term& t : sorted) std::sort(t.atoms.begin(), t.atoms.end(), Before);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Term& x, const Term& y) { return CanonicalBefore(s_, x, y); });
  Parameters parameters(s_);
  for (Term& t : sorted) {
    for (Atom& a : t.atoms) {
      for (Poly& p : a.index) p = Valid(parameters.OfIndex(p, t.binders));
    }
  }
  HeadInfo head;
  for (Term& t : sorted) {
    if (!s_.IsGlobal(t.size)) throw Unsupported("a division by a varying count in a function");
    t.count = Valid(parameters.OfGuard(t.count, t.binders));
    for (base::Condition& c : t.guards) {
      c = base::Normal({c.kind, Valid(parameters.OfGuard(c.p, t.binders))});
    }
    head.body.push_back(WithLocalBinders(s_, t));
  }
  head.kind = kind;
  head.fn = fn;
  head.parameters = static_cast<int>(parameters.arguments().size());
  Atom access;
  access.index = parameters.arguments();

  const auto alike = [&](const HeadInfo& h) {
    return h.kind == kind && h.parameters == head.parameters &&
           (kind != HeadInfo::Kind::kFunction || h.fn == fn);
  };
  for (std::size_t h = 0; h < s_.heads.size(); ++h) {
    if (!alike(s_.heads[h])) continue;
    if (s_.fault == Fault::kLiftIgnoresBody || SameSpelling(s_.heads[h].body, head.body)) {
      access.head = static_cast<Head>(h);
      return access;
    }
  }
  for (std::size_t h = 0; h < s_.heads.size(); ++h) {
    if (!alike(s_.heads[h])) continue;
    try {
      const Comparison c = kind == HeadInfo::Kind::kMax
                               ? CompareFamilies(s_, head.body, s_.heads[h].body, {})
                               : Compare(s_, head.body, s_.heads[h].body, {});
      if (c.kind != Comparison::Kind::kEqual) continue;
    } catch (const Unsupported&) {
      continue;  // Not known to be equal: another head.
    }
    access.head = static_cast<Head>(h);
    return access;
  }
  LearnSigns(head);
  s_.heads.push_back(std::move(head));
  access.head = static_cast<Head>(s_.heads.size() - 1);
  return access;
}

void Normalizer::LearnSigns(HeadInfo& head) {
  const auto all = [&](auto&& holds) {
    return std::all_of(head.body.begin(), head.body.end(), holds);
  };
  const auto positive = [&](const Term& t) {
    try {
      return Positive(t);
    } catch (const Unsupported&) {
      return false;
    }
  };
  const auto non_negative = [&](const Term& t) { return NonNegative(t, {}); };
  // A sum of what is not negative, one of which is positive.
  const auto positive_sum = [&] {
    return all(non_negative) && std::any_of(head.body.begin(), head.body.end(), positive);
  };
  switch (head.kind) {
    case HeadInfo::Kind::kFunction:
      switch (head.fn) {
        case ops::Fn::kRelu:
          head.non_negative = true;
          break;
        case ops::Fn::kSigmoid:
        case ops::Fn::kExp:
          head.positive = true;
          break;
        case ops::Fn::kRecip:
          head.positive = positive_sum();
          break;
        case ops::Fn::kSqrt:
          head.positive = positive_sum();
          head.non_negative = all(non_negative);
          break;
        case ops::Fn::kTanh:
        case ops::Fn::kErf:
          break;
      }
      break;
    case HeadInfo::Kind::kSum:
      head.positive = positive_sum();
      head.non_negative = all(non_negative);
      break;
    case HeadInfo::Kind::kMax:
      head.positive = !head.body.empty() && all(positive);
      head.non_negative = all(non_negative);
      break;
    case HeadInfo::Kind::kInput:
    case HeadInfo::Kind::kReal:
    case HeadInfo::Kind::kRecipOf:
      break;
  }
  head.non_negative = head.non_negative || head.positive;
}

Term Normalizer::LiftedTerm(const Term& t, const Guards& context) {
  Term one = t;
  one.coefficient = 1;
  Canonical(one, context);
  Term out;
  out.coefficient = t.coefficient;
  out.atoms = {Lift(HeadInfo::Kind::kSum, ops::Fn::kRelu, {one})};
  return out;
}

}  // namespace tenon::nf
