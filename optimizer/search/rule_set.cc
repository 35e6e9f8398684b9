#include "optimizer/search/rule_set.h"

#include <utility>

namespace tenon::optimizer {

RuleSet::RuleSet(std::span<const SearchRule> rules, bool fast_math)
    : single_(ops::AllOperators().size()), multiple_(ops::AllOperators().size()) {
  for (std::size_t k = 0; k < rules.size(); ++k) {
    const auto& rule = rules[k].rule;
    if (rule->float_class == rules::FloatClass::kDomain && !fast_math) {
      ++refused_;
      continue;
    }
    for (const rules::Direction d : {rules::Direction::kForward, rules::Direction::kBackward}) {
      if (d == rules::Direction::kBackward && !rule->both) continue;
      auto compiled = rules::CompiledRule::Compile(rule, d);
      if (!compiled) continue;
      const std::size_t kind = compiled->root_op().op->index();
      const bool single = compiled->roots().size() == 1;
      has_multiple_ = has_multiple_ || !single;
      (single ? single_ : multiple_)[kind].push_back(int(entries_.size()));
      entries_.push_back({std::move(*compiled), int(k)});
    }
  }
}

}  // namespace tenon::optimizer
