// What a comparison of a numerator says of its quotient: a hint for whoever looks for a proof.
#pragma once

#include <algorithm>
#include <vector>

#include "verifier/nf/index_plan.h"

namespace tenon::nf {

// Let q be the division `s` = floor(n / d), and p >= 0 say that n < k d or that
// n >= k d for a polynomial k that is linear. Returns the bounds k - 1 - q and q - k that follow.
// (The one that p implies is among them; nothing here is claimed of the others.)
inline std::vector<Poly> QuotientBounds(const base::Symbols& symbols, Symbol s, const Poly& p) {
  const auto linear = [](const Poly& k) {
    return !k.is_constant() && std::all_of(k.terms().begin(), k.terms().end(),
                                           [](const Poly::Term& t) { return t.monomial[1] == 0; });
  };
  std::vector<Poly> bounds;
  const Poly& n = symbols.numerator(s);
  const Poly& d = symbols.denominator(s);
  const Division above = Divide(p + n + 1, d), below = Divide(n - p, d);
  if (above.rest.is_constant(0) && linear(above.quotient)) {
    bounds.push_back(above.quotient - 1 - Poly::Var(s));
  }
  if (below.rest.is_constant(0) && linear(below.quotient)) {
    bounds.push_back(Poly::Var(s) - below.quotient);
  }
  return bounds;
}

}  // namespace tenon::nf
