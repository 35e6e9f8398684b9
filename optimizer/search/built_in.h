// Rules that the search always has, because no universe of a bearable size holds them:
//
//   * how views (Slice) pass through operators on single elements, in all ranks and axes: what
//     merged operators give is read through slices, and activations would be stuck behind them;
//   * the fusions of convolutions with a bias or several groups;
//   * a normalization behind a convolution goes into the kernel;
//   * the sum of two average pools is one pool of the sum.
//
// They are ordinary rules, proved by the tests like all others.
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

// Rules that merge views of views (a Slice of a Slice, of a piece of a Concat, ..), which equality
// saturation uses besides. All are `exact`.
std::string ViewRuleText();
std::vector<SearchRule> ViewRules();

// Appends the rules of a text that is known to be good.
void AddBuiltIn(const std::string& text, rules::FloatClass float_class,
                std::vector<SearchRule>& out);

}  // namespace tenon::optimizer
