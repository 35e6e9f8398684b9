#include "optimizer/search/rule_set.h"

#include <utility>

namespace tenon::optimizer {

RuleSet::RuleSet(std::span<const SearchRule> rules, bool fast_math)
    : single_(ops::AllOperators().size()), multiple_(ops::AllOperators().size()) {
  for (std::size_t k = 0; k < rules.size(); ++k) {
    const auto& rule = rules[k].rule;
    if (!Permitted(rules[k], fast_math)) {
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
      std::vector<int> skeletons(rule->graph.size(), -1);
      for (const graph::NodeId id : rule->graph.Reachable(compiled->roots())) {
        if (rule->graph.node(id).is_input()) continue;
        const ops::Operator& skeleton = compiled->pattern_op(id).skeleton;
        int& number = skeletons[std::size_t(id)] = Skeleton(skeleton);
        if (number >= 0) continue;
        number = int(skeletons_.size());
        skeleton_by_hash_.emplace(ops::Hash(skeleton), number);
        skeletons_.push_back(skeleton);
      }
      entries_.push_back({std::move(*compiled), int(k), std::move(skeletons)});
    }
  }
}

int RuleSet::Skeleton(const ops::Operator& skeleton) const {
  const auto [first, last] = skeleton_by_hash_.equal_range(ops::Hash(skeleton));
  for (auto it = first; it != last; ++it) {
    if (skeletons_[std::size_t(it->second)] == skeleton) return it->second;
  }
  return -1;
}

}  // namespace tenon::optimizer
