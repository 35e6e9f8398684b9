#include "optimizer/search/eqsat_rules.h"

#include "optimizer/search/built_in.h"

namespace tenon::optimizer {

EqsatRules::EqsatRules(std::span<const SearchRule> rules, bool fast_math)
    : vocabulary_(std::make_unique<egraph::Vocabulary>()),
      set_(std::make_unique<egraph::RuleSet>(*vocabulary_)) {
  for (std::size_t k = 0; k < rules.size(); ++k) {
    if (!Permitted(rules[k], fast_math)) {
      ++refused_;
      continue;
    }
    set_->AddAsWritten(rules[k].rule);
    sources_.push_back(int(k));
  }
  for (const SearchRule& rule : ViewRules()) {
    set_->AddAsWritten(rule.rule);
    sources_.push_back(-1);
  }
}

}  // namespace tenon::optimizer
