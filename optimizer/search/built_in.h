// Rules that the search always has: how views (Slice) pass through operators on single elements.
//
// They gain nothing by themselves, and no universe that could be enumerated has them in all ranks
// and axes, but what merged operators give is read through slices, and without these rules an
// activation would be stuck behind them. They are ordinary rules, proved by the tests like all
// others.
#pragma once

#include <string>
#include <vector>

#include "optimizer/search/rule_set.h"

namespace tenon::optimizer {

inline constexpr const char* kBuiltInPack = "built-in";

// The text of the rules (docs/formats/rules.md).
std::string BuiltInRuleText();

// The same as rules of the pack kBuiltInPack. All are of class `exact` or `finite`.
std::vector<SearchRule> BuiltInRules();

}  // namespace tenon::optimizer
