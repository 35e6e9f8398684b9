// EqsatRules: the rules of all packs as an e-graph takes them, and those that merge views.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/egraph/rule_set.h"
#include "core/egraph/vocabulary.h"
#include "optimizer/search/rule_set.h"

namespace tenon::optimizer {

// Thread-compatible. The vocabulary grows with the e-graphs that use it.
class EqsatRules {
 public:
  // Rules of class `domain` are left out unless `fast_math`. A rule is matched backwards only if it
  // says `both`.
  EqsatRules(std::span<const SearchRule> rules, bool fast_math);

  egraph::Vocabulary& vocabulary() const { return *vocabulary_; }
  const egraph::RuleSet& set() const { return *set_; }
  // The index, among the rules given, of the rule with this number; -1 for one that merges views.
  int source(std::int32_t number) const { return sources_[std::size_t(number)]; }
  int refused() const { return refused_; }

 private:
  std::unique_ptr<egraph::Vocabulary> vocabulary_;
  std::unique_ptr<egraph::RuleSet> set_;
  std::vector<int> sources_;
  int refused_ = 0;
};

}  // namespace tenon::optimizer
