// N3: what is assumed about scalar functions, and nothing else.
//
//   Relu(0) = 0; Relu(x) = x where x is a sum of products of non-negative factors;
//   Relu(c x) = c Relu(x) for a non-negative factor c; Relu(-x) = Relu(x) - x
//   tanh(0) = 0; sigmoid(0) = 1/2; sqrt(0) = 0; exp(0) = 1; erf(0) = 0
//   sqrt(x) sqrt(x) = x and its reciprocal, where x is a sum of products of non-negative factors
//   exp(a + b) = exp(a) exp(b); exp(-a) = 1 / exp(a)
//   fn(max of x) = max of fn(x) for Relu, sigmoid, tanh, exp and erf, which are monotone
//   1 / (a b) = (1/a) (1/b); 1 / (1/a) = a; 1 / n for a number n other than 0
//
// The laws of the reciprocal hold for the total function with 1/0 = 0. All are identities over the
// reals; each is applied in one direction, so that equal expressions meet.
#include <algorithm>

#include "verifier/nf/coordinates.h"
#include "verifier/nf/normalize.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

using ops::Fn;

bool IsOneAccess(const Term& t) {
  return t.is_plain() && t.coefficient == 1 && t.atoms.size() == 1;
}

}  // namespace

bool Normalizer::NonNegative(const Term& t, const Guards& context) {
  if (s_.fault == Fault::kReluIsLinear) return true;
  if (t.coefficient.sign() < 0) return false;
  if (!t.count.is_constant() ? !s_.facts.Implied(Joined(context, t.guards), base::Ge(t.count, 0))
                             : t.count.constant() < 0) {
    return false;
  }
  // Atoms are sorted, so equal ones are neighbours: pairs are squares.
  for (std::size_t k = 0; k < t.atoms.size(); ++k) {
    if (s_.heads[static_cast<std::size_t>(t.atoms[k].head)].non_negative) continue;
    if (k + 1 == t.atoms.size() || !(t.atoms[k] == t.atoms[k + 1])) return false;
    ++k;
  }
  return true;
}

// Known of each value that the term has, provided it holds at least once.
bool Normalizer::Positive(const Term& t) {
  if (t.coefficient.sign() <= 0) return false;
  for (const Atom& a : t.atoms) {
    if (!s_.heads[static_cast<std::size_t>(a.head)].positive) return false;
  }
  // It is repeated at least once: count what its binders run over.
  std::vector<Counted> counted;
  Coordinates(s_, t, {}, {}, /*with_atoms=*/false, counted);
  return counted.size() == 1 && s_.facts.ImpliedAll({}, counted[0].when) &&
         s_.facts.Implied({}, base::Ge(counted[0].count, 1));
}

Normalizer::Outcome Normalizer::Function(const Atom& a, const Guards& context) {
  Nf inner = Normalize(*a.body, context);
  if (const auto undecided = Undecided(inner, {}, context)) return Outcome::SplitBy(*undecided);
  for (Term& t : inner) Canonical(t, context);
  inner = Collected(inner);
  std::stable_sort(inner.begin(), inner.end(),
                   [&](const Term& x, const Term& y) { return CanonicalBefore(s_, x, y); });
  const bool monotone = a.fn != Fn::kRecip && a.fn != Fn::kSqrt;
  if (monotone && inner.size() == 1 && IsOneAccess(inner[0]) &&
      s_.heads[static_cast<std::size_t>(inner[0].atoms[0].head)].kind == HeadInfo::Kind::kMax) {
    return Outcome::Expand(MaximumOf(a.fn, inner[0].atoms[0]));
  }
  switch (a.fn) {
    case Fn::kRelu:
      return Relu(inner, context);
    case Fn::kExp:
      return Exp(inner);
    case Fn::kRecip:
      return Recip(inner, context);
    case Fn::kTanh:
    case Fn::kSqrt:
    case Fn::kErf:
      if (inner.empty()) return Outcome::Expand({});
      break;
    case Fn::kSigmoid:
      if (inner.empty()) return Outcome::Expand(Constant(Rational(1, 2)));
      break;
  }
  return Outcome::Is(Lift(HeadInfo::Kind::kFunction, a.fn, inner));
}

Normalizer::Outcome Normalizer::Relu(const Nf& inner, const Guards& context) {
  const auto non_negative = [&](const Term& t) { return NonNegative(t, context); };
  if (std::all_of(inner.begin(), inner.end(), non_negative)) return Outcome::Expand(inner);
  const Nf negated = Scale(inner, -1);
  if (std::all_of(negated.begin(), negated.end(), non_negative)) return Outcome::Expand({});
  const Rational lead = inner[0].coefficient;
  if (lead.sign() < 0) return Outcome::Expand(Plus(nf::Apply(Fn::kRelu, negated), inner));
  if (!(lead == 1)) {
    return Outcome::Expand(Scale(nf::Apply(Fn::kRelu, Scale(inner, lead.Inverse())), lead));
  }
  if (inner.size() == 1) {
    // Non-negative factors that do not depend on the bound variables come out.
    const Term& t = inner[0];
    Term outside, inside = t;
    inside.atoms.clear();
    outside.size = t.size;
    inside.size = 1;
    for (const Atom& a : t.atoms) {
      const bool bound = std::any_of(a.index.begin(), a.index.end(),
                                     [&](const Poly& p) { return s_.Mentions(p, t.binders); });
      const bool out = !bound && s_.heads[static_cast<std::size_t>(a.head)].non_negative;
      (out ? outside : inside).atoms.push_back(a);
    }
    if (!outside.atoms.empty() || !t.size.is_constant(1)) {
      return Outcome::Expand(s_.Product({outside}, nf::Apply(Fn::kRelu, {inside})));
    }
  }
  return Outcome::Is(Lift(HeadInfo::Kind::kFunction, Fn::kRelu, inner));
}

std::optional<Nf> Normalizer::SquaredRoot(const Term& t) {
  for (std::size_t k = 0; k < t.atoms.size(); ++k) {
    const Atom& a = t.atoms[k];
    const auto again =
        std::find(t.atoms.begin() + static_cast<std::ptrdiff_t>(k) + 1, t.atoms.end(), a);
    if (again == t.atoms.end()) continue;
    HeadInfo root = s_.heads[static_cast<std::size_t>(a.head)];
    const bool inverse = root.kind == HeadInfo::Kind::kRecipOf;
    if (inverse) root = s_.heads[static_cast<std::size_t>(root.of)];
    const bool is_root = root.kind == HeadInfo::Kind::kFunction && root.fn == Fn::kSqrt;
    if (!is_root || (!root.non_negative && s_.fault != Fault::kRootOfAnything)) continue;
    base::Symbols::Substitution arguments;
    for (std::size_t q = 0; q < a.index.size(); ++q) {
      arguments[s_.Param(static_cast<int>(q))] = a.index[q];
    }
    Nf square;
    for (const Term& u : root.body) {
      if (auto v = s_.Substitute(s_.Renamed(u), arguments)) square.push_back(*std::move(v));
    }
    if (inverse) square = nf::Apply(Fn::kRecip, std::move(square));
    Term rest = t;
    rest.atoms.erase(rest.atoms.begin() + (again - t.atoms.begin()));
    rest.atoms.erase(rest.atoms.begin() + static_cast<std::ptrdiff_t>(k));
    return s_.Product({rest}, square);
  }
  return std::nullopt;
}

Normalizer::Outcome Normalizer::Exp(const Nf& inner) {
  if (inner.empty()) return Outcome::Expand(Constant(1));
  if (inner.size() > 1) {
    Nf product = Constant(1);
    for (const Term& t : inner) product = s_.Product(product, nf::Apply(Fn::kExp, {t}));
    return Outcome::Expand(std::move(product));
  }
  if (inner[0].coefficient.sign() < 0) {
    return Outcome::Expand(nf::Apply(Fn::kRecip, nf::Apply(Fn::kExp, Scale(inner, -1))));
  }
  return Outcome::Is(Lift(HeadInfo::Kind::kFunction, Fn::kExp, inner));
}

// 1 / t for a term without atoms: a number, or a count over dims that is at least 1.
std::optional<Term> Normalizer::ReciprocalOfCount(const Term& t, const Guards& context) {
  std::vector<Counted> counted;
  try {
    Coordinates(s_, t, context, {}, /*with_atoms=*/false, counted);
  } catch (const Unsupported&) {
    return std::nullopt;  // A count that cannot be written down: it is lifted as it is.
  }
  if (counted.size() != 1 || !s_.facts.ImpliedAll(context, counted[0].when)) return std::nullopt;
  const Poly& count = counted[0].count;
  Term out;
  out.coefficient = t.coefficient.Inverse();
  out.count = t.size;
  if (count.is_constant() && count.constant() != 0) {
    out.coefficient = out.coefficient * Rational(1, count.constant());
    return out;
  }
  if (!s_.IsGlobal(count) || !s_.facts.Implied({}, base::Ge(count, 1))) return std::nullopt;
  out.size = count;
  return out;
}

Normalizer::Outcome Normalizer::Recip(const Nf& inner, const Guards& context) {
  if (inner.size() != 1) {
    return Outcome::Is(Lift(HeadInfo::Kind::kFunction, Fn::kRecip, inner));
  }
  const Term& t = inner[0];
  if (t.atoms.empty()) {
    if (auto inverse = ReciprocalOfCount(t, context)) return Outcome::Expand({*inverse});
    return Outcome::Is(Lift(HeadInfo::Kind::kFunction, Fn::kRecip, inner));
  }
  if (IsOneAccess(t)) {
    Atom a = t.atoms[0];
    const HeadInfo info = s_.heads[static_cast<std::size_t>(a.head)];
    if (info.kind == HeadInfo::Kind::kRecipOf) {
      a.head = info.of;
      return Outcome::Is(a);
    }
    for (std::size_t h = 0; h < s_.heads.size(); ++h) {
      if (s_.heads[h].kind == HeadInfo::Kind::kRecipOf && s_.heads[h].of == a.head) {
        a.head = static_cast<Head>(h);
        return Outcome::Is(a);
      }
    }
    HeadInfo inverse;
    inverse.kind = HeadInfo::Kind::kRecipOf;
    inverse.of = a.head;
    inverse.positive = inverse.non_negative = info.positive;
    s_.heads.push_back(std::move(inverse));
    a.head = static_cast<Head>(s_.heads.size() - 1);
    return Outcome::Is(a);
  }
  // Numbers, and factors that do not depend on the bound variables, come out.
  Nf outside = Constant(t.coefficient.Inverse());
  outside[0].count = t.size;
  Term inside = t;
  inside.coefficient = 1;
  inside.size = 1;
  inside.atoms.clear();
  for (const Atom& a : t.atoms) {
    const bool bound = std::any_of(a.index.begin(), a.index.end(),
                                   [&](const Poly& p) { return s_.Mentions(p, t.binders); });
    if (bound) {
      inside.atoms.push_back(a);
      continue;
    }
    Term one;
    one.atoms.push_back(a);
    outside = s_.Product(outside, nf::Apply(Fn::kRecip, {one}));
  }
  const bool empty = inside.is_plain() && inside.atoms.empty();
  const bool moved =
      inside.atoms.size() != t.atoms.size() || !(t.coefficient == 1) || !t.size.is_constant(1);
  if (!moved) return Outcome::Is(Lift(HeadInfo::Kind::kFunction, Fn::kRecip, inner));
  if (!empty) outside = s_.Product(outside, nf::Apply(Fn::kRecip, {inside}));
  return Outcome::Expand(std::move(outside));
}

}  // namespace tenon::nf
