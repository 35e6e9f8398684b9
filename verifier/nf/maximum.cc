// Maxima.
//
// A maximum is over a union of families: all values whose binders fulfil the guards. A maximum of
// maxima is flattened into the union; a guard inside a value splits its family in two (a padded
// value is x inside and 0 outside, both are members). Two maxima are equal when their families have
// the same members, which is a comparison of sets and not of sums (verifier/nf/compare.h). Positive
// numbers come out, and monotone functions (Relu, sigmoid, tanh, exp) go inside.
#include <algorithm>

#include "verifier/nf/normalize.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

using Family = Normalizer::Family;

bool IsOneMaximum(const Nf& value) {
  return value.size() == 1 && value[0].coefficient == 1 && value[0].binders.empty() &&
         value[0].count.is_constant(1) && value[0].size.is_constant(1) &&
         value[0].atoms.size() == 1 && value[0].atoms[0].kind == Atom::Kind::kMax;
}

// Pushes the family where `c` holds and those where it does not.
void SplitBy(const Family& f, const base::Condition& c, std::vector<Family>& out) {
  std::vector<base::Condition> cases = base::Negate(c);
  cases.push_back(c);
  for (const base::Condition& one : cases) {
    Family part = f;
    if (AddGuard(part.guards, one)) out.push_back(std::move(part));
  }
}

// The positive number that every member is a multiple of, when each is a single product with that
// coefficient; 1 otherwise.
Rational CommonFactor(const std::vector<Family>& families) {
  Rational factor = 1;
  for (std::size_t k = 0; k < families.size(); ++k) {
    const Nf& value = families[k].value;
    if (value.size() != 1 || value[0].coefficient.sign() <= 0) return 1;
    if (k > 0 && !(value[0].coefficient == factor)) return 1;
    factor = value[0].coefficient;
  }
  return factor;
}

}  // namespace

// A binder that nothing is read at and that has a value: every one of its members is the same.
void Normalizer::DropUnused(Term& member, const Guards& context) {
  const std::vector<Symbol> binders = member.binders;
  for (const Symbol b : binders) {
    const bool is_read = std::any_of(member.atoms.begin(), member.atoms.end(), [&](const Atom& a) {
      return std::any_of(a.index.begin(), a.index.end(),
                         [&](const Poly& p) { return p.Mentions(b, s_.symbols); });
    });
    if (is_read) continue;
    std::optional<Poly> lower, upper;
    Guards rest;
    bool simple = true;
    for (const base::Condition& c : member.guards) {
      const auto unit = c.p.LinearCoefficient(b, s_.symbols);
      if (unit == 0) {
        rest.push_back(c);
        continue;
      }
      std::optional<Poly>& bound = unit == 1 ? lower : upper;
      simple =
          simple && (unit == 1 || unit == -1) && !bound && c.kind == base::Condition::Kind::kGe0;
      bound = unit == 1 ? Poly::Var(b) - c.p : c.p + Poly::Var(b);
    }
    if (!simple || !lower || !upper) continue;
    if (!s_.facts.Implied(Joined(context, rest), base::Ge(*upper, *lower))) continue;
    std::erase(member.binders, b);
    member.guards = std::move(rest);
  }
}

// Of a single value and 0: Relu of the value.
std::optional<Term> Normalizer::Rectified(const std::vector<Family>& families,
                                          const Guards& context) {
  const auto is_zero = [&](const Family& f) {
    const bool constant = f.value.size() == 1 && f.value[0].atoms.empty();
    return f.value.empty() || (s_.fault == Fault::kClampIsRelu && constant);
  };
  if (families.size() != 2 || is_zero(families[0]) == is_zero(families[1])) return std::nullopt;
  std::optional<Term> out;
  for (const Family& f : families) {
    Term one = Apply(ops::Fn::kRelu, f.value)[0];
    one.binders = f.binders;
    one.guards = f.guards;
    Canonical(one, context);
    // There is exactly one such member.
    if (!one.binders.empty() || !one.guards.empty()) return std::nullopt;
    if (!is_zero(f)) out = std::move(one);
  }
  return out;
}

Normalizer::Outcome Normalizer::Maximum(const Atom& a, const Guards& context) {
  std::vector<Family> todo{{a.binders, a.guards, *a.body}}, done;
  while (!todo.empty()) {
    Family f = std::move(todo.back());
    todo.pop_back();
    s_.Step();
    Guards open;
    bool possible = true;
    for (const base::Condition& c : f.guards) possible = AddGuard(open, c) && possible;
    if (!possible) continue;
    f.guards = std::move(open);
    const Guards inside = Joined(context, f.guards);
    if (s_.facts.Unsat(inside)) continue;
    // Where its guard fails, a part of the member is 0.
    if (const auto undecided = Undecided(f.value, {}, inside)) {
      SplitBy(f, *undecided, todo);
      continue;
    }
    if (IsOneMaximum(f.value)) {
      const Atom inner = f.value[0].atoms[0];
      Family flat{f.binders, f.guards, *inner.body};
      flat.binders.insert(flat.binders.end(), inner.binders.begin(), inner.binders.end());
      flat.guards = Joined(flat.guards, inner.guards);
      todo.push_back(std::move(flat));
      continue;
    }
    f.value = Normalize(f.value, inside);
    if (const auto undecided = Undecided(f.value, {}, inside)) {
      SplitBy(f, *undecided, todo);
      continue;
    }
    Guards own;
    for (const base::Condition& c : f.guards) {
      if (s_.Mentions(c.p, f.binders)) {
        own.push_back(c);
      } else if (!s_.facts.Implied(context, c)) {
        return Outcome::SplitBy(c);
      }
    }
    f.guards = std::move(own);
    done.push_back(std::move(f));
  }
  if (done.empty()) throw Unsupported("a maximum over nothing");
  if (s_.fault == Fault::kMaximumForgets && done.size() == 2) done.pop_back();
  if (auto rectified = Rectified(done, context)) return Outcome::Expand({*std::move(rectified)});
  const Rational factor = CommonFactor(done);
  if (!(factor == 1)) {
    for (Family& f : done) f.value = Scale(f.value, factor.Inverse());
  }
  Nf members;
  for (const Family& f : done) {
    Term member;
    member.binders = f.binders;
    member.guards = f.guards;
    if (f.value.size() == 1 && f.value[0].is_plain() && f.value[0].coefficient == 1 &&
        f.value[0].atoms.size() == 1) {
      member.atoms = f.value[0].atoms;
    } else {
      const Guards inside = Joined(context, f.guards);
      Nf value = f.value;
      for (Term& t : value) Canonical(t, inside);
      if (done.size() == 1 && f.binders.empty()) {
        return Outcome::Expand(Scale(std::move(value), factor));
      }
      member.atoms = {Lift(HeadInfo::Kind::kSum, ops::Fn::kRelu, value)};
    }
    Canonical(member, context);
    DropUnused(member, context);
    members.push_back(std::move(member));
  }
  if (members.size() == 1 && members[0].binders.empty() && members[0].guards.empty()) {
    return Outcome::Expand(Scale(std::move(members), factor));
  }
  const Atom access = Lift(HeadInfo::Kind::kMax, ops::Fn::kRelu, members);
  if (factor == 1) return Outcome::Is(access);
  Term scaled;
  scaled.coefficient = factor;
  scaled.atoms = {access};
  return Outcome::Expand({scaled});
}

Nf Normalizer::MaximumOf(ops::Fn fn, const Atom& access) {
  const HeadInfo head = s_.heads[static_cast<std::size_t>(access.head)];
  base::Symbols::Substitution arguments;
  for (std::size_t k = 0; k < access.index.size(); ++k) {
    arguments[s_.Param(static_cast<int>(k))] = access.index[k];
  }
  Nf members;
  for (const Term& family : head.body) {
    const auto t = s_.Substitute(s_.Renamed(family), arguments);
    if (!t) continue;
    Term value;
    value.atoms = t->atoms;
    const Nf image = Normalize(nf::Apply(fn, {value}), t->guards);
    Term member = *t;
    if (image.size() == 1 && image[0].is_plain() && image[0].coefficient == 1 &&
        image[0].atoms.size() == 1) {
      member.atoms = image[0].atoms;
    } else {
      member.atoms = {Lift(HeadInfo::Kind::kSum, ops::Fn::kRelu, image)};
    }
    members.push_back(std::move(member));
  }
  Term out;
  out.atoms = {Lift(HeadInfo::Kind::kMax, ops::Fn::kRelu, members)};
  return {out};
}

}  // namespace tenon::nf
