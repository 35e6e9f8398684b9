// Completing a rule: solving the equalities that it needs, and finding the conditions that are
// left. The part of lifting (core/rules/lift.h) and joining that looks at sizes only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rules/rule.h"

namespace tenon::rules {

// Whether `c` follows from `known` and from dims being at least 1, by adding up at most two known
// conditions and lower bounds. Incomplete: false means nothing.
bool Implied(const base::Condition& c, std::span<const base::Condition> known,
             const base::Symbols& symbols);

// The rule with `s` replaced by `expr` in every size. False when an operator does not fit then.
bool Replace(Rule& rule, base::Symbol s, const base::Poly& expr);

enum class Ways : std::uint8_t {
  kForward,  // From source to target only; fails when the source does not determine the target.
  kEither,   // Both ways where possible, else the one that is.
};

// lift.h's Complete. With `base`, values of all symbols, it fails as well when a condition does not
// hold there: the instance that the rule came from.
bool CompleteAt(Rule& rule, const std::vector<std::int64_t>* base, Ways ways = Ways::kEither);

}  // namespace tenon::rules
