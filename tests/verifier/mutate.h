// Small random changes of a rule, for fuzzing the prover against the tester.
#pragma once

#include <optional>
#include <random>

#include "core/rules/rule.h"

namespace tenon::verifier {

// `rule` changed once. In the source or the target: an attribute, the order of operands, an
// operand, an operator for a similar or any other one, an operator left out or put on top. Or in
// `where`: a condition dropped, moved or turned round. Or its two sides exchanged. Nothing when the
// change does not fit the types, or changes nothing.
std::optional<rules::Rule> Mutated(const rules::Rule& rule, std::mt19937_64& random);

}  // namespace tenon::verifier
