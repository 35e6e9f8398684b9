// How the normaliser says that it cannot go on.
//
// Its recursion runs through the lambdas of the operator structs, which return scalars and nothing
// else, so a status cannot travel back through them. An Unsupported does, as the one C++ exception
// of this room; verifier/decide.cc turns it into the verdict `unknown`, and it goes no further.
#pragma once

#include <string>
#include <utility>

namespace tenon::nf {

struct Unsupported {
  explicit Unsupported(std::string reason) : why(std::move(reason)) {}
  std::string
      why;  // For a person: what was met, e.g. "a bound variable with no solvable equation".
};

}  // namespace tenon::nf
