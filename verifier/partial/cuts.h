// Where along an output index the terms of a normal form begin or cease to hold.
#pragma once

#include <vector>

#include "verifier/nf/session.h"
#include "verifier/nf/term.h"

namespace tenon::partial {

// Polynomials e over sizes such that a guard of `nf`, its functions' and maxima's included, changes
// at index = e for an extreme choice of the bound variables. A cut too few makes regions coarser,
// never wrong. `nf` is as it was denoted.
std::vector<base::Poly> CutsOf(nf::Session& session, const nf::Nf& nf, base::Symbol index);

}  // namespace tenon::partial
