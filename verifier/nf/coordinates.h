// Access coordinates: a sum of products, seen from the elements that it reads.
#pragma once

#include <span>
#include <vector>

#include "verifier/nf/session.h"

namespace tenon::nf {

// coefficient * count / size where `when` holds, else 0.
struct Counted {
  Rational coefficient = 1;
  Poly count = 1;
  Poly size = 1;
  Guards when;
};

// A term is a polynomial in what it reads; this gives the coefficient of the monomial
// head_1[y_1] * head_2[y_2] * .. as a sum of pieces over the coordinates y (Session::Coord), free
// indices and dims: how often the term reads exactly there. `order` puts the atoms into the order
// of the heads of the monomial. Without `with_atoms`: how often the guards hold, whatever is read.
// Bound variables are gone from the result. Throws Unsupported when one cannot be solved for.
void Coordinates(Session& s, const Term& t, const Guards& given, std::span<const int> order,
                 bool with_atoms, std::vector<Counted>& out);

}  // namespace tenon::nf
