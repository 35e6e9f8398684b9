// Small random changes of a rule's target, for fuzzing the prover against the tester.
#pragma once

#include <optional>
#include <random>

#include "core/rules/rule.h"

namespace tenon::verifier {

// `rule` with its target changed once: an attribute, the order of operands, an operand, or an
// operator for a similar one; or with a condition of `where` dropped. Nothing when the change does
// not fit the types, or changes nothing.
std::optional<rules::Rule> Mutated(const rules::Rule& rule, std::mt19937_64& random);

}  // namespace tenon::verifier
