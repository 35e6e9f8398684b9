// Normalisation: atoms become accesses, binders and guards canonical, so that equal elements become
// comparable (verifier/nf/compare.h).
//
// Each step keeps the value at every index where the context holds. It ends because each step
// removes an atom that is no access, or splits by a guard of a finite set; Session::Step bounds
// what theory does not.
#pragma once

#include <optional>

#include "verifier/nf/session.h"

namespace tenon::nf {

// Thread-compatible.
class Normalizer {
 public:
  explicit Normalizer(Session& session) : s_(session) {}

  // Equal to `nf` where `outer` holds; all atoms are accesses, sorted. Throws Unsupported.
  Nf Normalize(const Nf& nf, const Guards& outer);
  // A sum as one access, whatever its binders: for the pointwise step. `t` is normalised.
  Term LiftedTerm(const Term& t, const Guards& context);

  // Members of a maximum: `value` for all binders that fulfil the guards.
  struct Family {
    std::vector<Symbol> binders;
    Guards guards;
    Nf value;
  };

 private:
  // What became of an atom: an access; or the term must be split by a condition; or the atom equals
  // an Nf.
  struct Outcome {
    enum class Kind : std::uint8_t { kAccess, kSplit, kExpand };
    Kind kind = Kind::kAccess;
    Atom atom;
    Condition condition;
    Nf nf;
    static Outcome Is(Atom a) { return {Kind::kAccess, std::move(a), {}, {}}; }
    static Outcome SplitBy(Condition c) { return {Kind::kSplit, {}, std::move(c), {}}; }
    static Outcome Expand(Nf nf) { return {Kind::kExpand, {}, {}, std::move(nf)}; }
  };

  // normalize.cc: N1, N2, N4.
  bool Clean(Term& t, const Guards& outer);
  // A guard of `nf` without its own binders (or `own`) that the context does not decide; else
  // decided guards are dropped and terms that never hold removed.
  std::optional<Condition> Undecided(Nf& nf, const std::vector<Symbol>& own, const Guards& context);
  void Trim(Term& t, const Guards& context);
  void Canonical(Term& t, const Guards& context);
  void Multiply(Term& t, const Guards& outer);
  bool CancelSum(Term& t, const Guards& outer);
  static Nf Merged(const Nf& terms);

  // functions.cc: N3.
  Outcome Function(const Atom& a, const Guards& context);
  Outcome Relu(const Nf& inner, const Guards& context);
  Outcome Exp(const Nf& inner);
  // `t` with the square of a square root (or of its reciprocal) written without it, if there is
  // one.
  std::optional<Nf> SquaredRoot(const Term& t);
  Outcome Recip(const Nf& inner, const Guards& context);
  std::optional<Term> ReciprocalOfCount(const Term& t, const Guards& context);
  bool NonNegative(const Term& t, const Guards& context);
  bool Positive(const Term& t);

  // maximum.cc.
  Outcome Maximum(const Atom& a, const Guards& context);
  void DropUnused(Term& member, const Guards& context);
  std::optional<Term> Rectified(const std::vector<Family>& families, const Guards& context);
  // fn(access) for an access of a maximum and a monotone fn.
  Nf MaximumOf(ops::Fn fn, const Atom& access);

  // lift.cc: N5.
  Atom Lift(HeadInfo::Kind kind, ops::Fn fn, const Nf& inner);
  // Terms that differ in their coefficients and the names of their binders only become one.
  Nf Collected(const Nf& nf);
  void LearnSigns(HeadInfo& head);

  Session& s_;
};

// A total order on terms whose atoms are accesses, that does not depend on binder names where
// possible.
bool CanonicalBefore(const Session& s, const Term& a, const Term& b);

}  // namespace tenon::nf
