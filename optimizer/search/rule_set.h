// RuleSet: the rules of all packs, compiled and indexed for the search.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/rules/compiled.h"
#include "core/rules/rule.h"

namespace tenon::optimizer {

// A rule and where it comes from.
struct SearchRule {
  std::shared_ptr<const rules::Rule> rule;
  std::string pack;  // "matrix@1.0.0", or the name of a file; for the report only.
};

// Rules of class `domain` need `fast_math` (docs/float-classes.md).
inline bool Permitted(const SearchRule& rule, bool fast_math) {
  return fast_math || rule.rule->float_class != rules::FloatClass::kDomain;
}

// Immutable, thread-safe.
class RuleSet {
 public:
  struct Entry {
    rules::CompiledRule compiled;
    int source = 0;              // Index into the rules that the set was made from.
    std::vector<int> skeletons;  // By node of the rule's graph: Skeleton of its operator, or -1.
    bool forward() const { return compiled.direction() == rules::Direction::kForward; }
  };

  // Rules of class `domain` are left out unless `fast_math` (docs/float-classes.md), and so are
  // directions that determine nothing to replace with: a bare input as source, a target with
  // tensors or sizes that the source lacks.
  RuleSet(std::span<const SearchRule> rules, bool fast_math);

  const std::vector<Entry>& entries() const { return entries_; }
  // Entries with one output whose root is such an operator, ascending.
  std::span<const int> single(const ops::Operator& op) const { return single_[op.index()]; }
  // Entries with several outputs whose first root is such an operator, ascending.
  std::span<const int> multiple(const ops::Operator& op) const { return multiple_[op.index()]; }
  // The number of an operator without its sizes (rules::SplitSizes) among all that the patterns
  // have; -1 for one that no pattern has. Matching compares numbers.
  int Skeleton(const ops::Operator& skeleton) const;
  bool has_multiple() const { return has_multiple_; }
  // Rules left out because of their float class.
  int refused() const { return refused_; }

 private:
  std::vector<Entry> entries_;
  std::vector<ops::Operator> skeletons_;
  std::unordered_multimap<std::size_t, int> skeleton_by_hash_;
  std::vector<std::vector<int>> single_, multiple_;  // By kind of operator.
  bool has_multiple_ = false;
  int refused_ = 0;
};

}  // namespace tenon::optimizer
