// Assertions of Z3 as the text of an Obligation.
#pragma once

#include <z3++.h>

#include <string>

#include "verifier/smt/smtlib.h"

namespace tenon::smt {

// `names` says what a constant stands for, or is empty; it becomes a comment. Formulas are printed
// as trees. CHECKs that they consist of linear or polynomial arithmetic and connectives only, which
// is all that this folder makes.
std::string Script(const char* logic, const z3::expr_vector& assertions, Obligation::Answer answer,
                   const std::function<std::string(int number)>& names);

}  // namespace tenon::smt
