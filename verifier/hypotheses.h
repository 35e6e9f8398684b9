// What a rule assumes, in solved form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/poly.h"
#include "core/rules/rule.h"

namespace tenon::verifier {

// The conditions of `where` and what the operators under `outputs` require, normalised.
std::vector<base::Condition> ConditionsOf(const rules::Rule& rule,
                                          std::span<const graph::NodeId> outputs);

// Conditions with their linear equations solved: symbols of `eliminated` equal polynomials over the
// others wherever the conditions hold, and `rest` says the same of the others. Equal shapes become
// equal polynomials this way.
struct Solved {
  base::Symbols::Substitution eliminated;
  std::vector<base::Condition> rest;
  bool contradiction = false;  // A condition is false whatever the symbols are.
  bool overflow = false;       // A condition left 64 bits; nothing is known.
};
Solved SolveEquations(base::Symbols& symbols, std::vector<base::Condition> conditions);

}  // namespace tenon::verifier
