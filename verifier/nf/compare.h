// The decision: are two normal forms the same polynomial in what they read?
#pragma once

#include <string>

#include "verifier/nf/normalize.h"
#include "verifier/nf/session.h"

namespace tenon::nf {

struct Comparison {
  enum class Kind : std::uint8_t { kEqual, kDiffer, kUnknown };
  Kind kind = Kind::kUnknown;
  std::string where;  // The monomial that differs, for a person.
  // With kDiffer: sizes at which the coefficients differ. Proves nothing when the monomial has
  // lifted functions, or when a product of sizes was abstracted.
  std::map<Symbol, std::int64_t> model;
};

// kEqual: where `given` holds, a and b have the same value for all inputs, whatever functions the
// lifted heads stand for. All atoms are accesses. Throws Unsupported.
Comparison Compare(Session& s, const Nf& a, const Nf& b, const Guards& given);
// The same for two sets of families (one term with one atom each): kEqual when they have the same
// members, so that their greatest members are equal.
Comparison CompareFamilies(Session& s, const Nf& a, const Nf& b, const Guards& given);

// kEqual for facts that need case distinctions on signs: Relu, maxima and products over the reals.
// `a` and `b` are normalised; terms that are sums are taken as one thing each.
bool PointwiseEqual(Session& s, Normalizer& n, const Nf& a, const Nf& b, const Guards& given);

}  // namespace tenon::nf
