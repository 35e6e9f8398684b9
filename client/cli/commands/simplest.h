// A counterexample that a person can check: most of its values zero, the others small.
#pragma once

#include "core/rules/rule.h"
#include "verifier/verdict.h"

namespace tenon::cli {

// `example` with as many values as possible replaced by 0, else by 1 or -1, such that the evaluator
// still finds the two sides of `rule` different at the same output element. It is returned as it is
// when the rule cannot be evaluated at its sizes.
verifier::Counterexample Simplest(const rules::Rule& rule, const verifier::Counterexample& example);

}  // namespace tenon::cli
