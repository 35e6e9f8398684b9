// The normal form of a tensor element: a sum of guarded sums of products.
//
//   Nf   = term + term + ..
//   Term = coefficient * count / size * SUM over binders for which all guards hold of PRODUCT atoms
//   Atom = access head[indices] | fn(Nf) | max over binders for which all guards hold of Nf
//
// Binders run over all integers; their ranges are guards. After normalisation every atom is an
// access: of an input, of a constant that is no small fraction, or of a lifted function
// (verifier/nf/session.h: Heads).
//
// Within one term all binders, those inside its atoms included, are different symbols, so that
// substitution cannot capture. Product renames where that would fail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/poly.h"
#include "core/ops/domain.h"
#include "verifier/nf/rational.h"

namespace tenon::nf {

using base::Condition;
using base::Poly;
using base::Symbol;

// A conjunction.
using Guards = std::vector<Condition>;
// An index into Heads: what is accessed.
using Head = std::int32_t;

struct Term;
using Nf = std::vector<Term>;  // No terms: the number 0.

// A value type; `body` is shared and immutable.
struct Atom {
  enum class Kind : std::uint8_t { kAccess, kFn, kMax };
  Kind kind = Kind::kAccess;
  Head head = 0;                   // kAccess
  std::vector<Poly> index;         // kAccess
  ops::Fn fn = ops::Fn::kRelu;     // kFn
  std::vector<Symbol> binders;     // kMax
  Guards guards;                   // kMax
  std::shared_ptr<const Nf> body;  // kFn, kMax

  bool is_access() const { return kind == Kind::kAccess; }
  // For accesses: by head, then indices.
  friend bool operator==(const Atom& a, const Atom& b) {
    return a.is_access() && b.is_access() && a.head == b.head && a.index == b.index;
  }
};
// A total order on accesses.
bool Before(const Atom& a, const Atom& b);

struct Term {
  Rational coefficient = 1;
  Poly count = 1;  // How often the value is repeated; any integer.
  Poly size = 1;   // Divides; a polynomial over dims and attributes that is known to be positive.
  std::vector<Symbol> binders;
  Guards guards;
  std::vector<Atom> atoms;

  bool binds(Symbol s) const;
  // Whether it is coefficient * atoms, or coefficient alone: no sum, guard, count or size.
  bool is_plain() const;
};

Nf Constant(const Rational& value);
Nf Access(Head head, std::vector<Poly> index);
Nf Apply(ops::Fn fn, Nf body);
Nf Plus(Nf a, const Nf& b);
Nf Scale(Nf a, const Rational& by);
// Every term of `a` holds only where `guards` do.
Nf Guarded(Nf a, const Guards& guards);

// Appends `c` unless it is trivially true or there already. Returns false when it is trivially
// false. Throws Unsupported when it is invalid (a size overflowed).
bool AddGuard(Guards& guards, const Condition& c);
Guards Joined(const Guards& a, const Guards& b);

// Throws Unsupported for an invalid polynomial.
const Poly& Valid(const Poly& p);

// Appends all binders, also those of atoms' bodies.
void CollectBinders(const Nf& nf, std::vector<Symbol>& out);
void CollectBinders(const Term& t, std::vector<Symbol>& out);

// p = coefficient * symbol + rest, neither of which mentions the symbol; nothing when p is not of
// that form. The coefficient is zero when p does not mention the symbol.
struct LinearForm {
  Poly coefficient;
  Poly rest;
};
std::optional<LinearForm> LinearIn(const Poly& p, Symbol symbol, const base::Symbols& symbols);

}  // namespace tenon::nf
