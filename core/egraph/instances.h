// Applications of rules, made once more on terms.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/egraph/closure.h"
#include "core/egraph/egraph.h"
#include "core/egraph/rule_set.h"
#include "core/egraph/saturate.h"

namespace tenon::egraph {

// Thread-compatible. Refers to all that it is given.
class Instances {
 public:
  // What one application made one output of.
  struct Made {
    bool forward = true;  // `left` is the rule's source.
    std::int32_t rule = 0, output = 0;
    std::vector<std::int64_t> values;
    std::vector<TermNode> inputs;
    TermNode left = graph::kNoNode, right = graph::kNoNode;
  };

  // `g` keeps operands; its inputs are those of `terms`, to which terms are added.
  Instances(const RuleSet& rules, const EGraph& g, graph::Graph& terms);

  // Both sides of the rule, as terms over those that its input classes began with.
  StatusOr<Made> Repeat(const Application& a);

 private:
  // The term that a class began with.
  StatusOr<TermNode> TermOf(ClassId c);

  const RuleSet& rules_;
  const EGraph& g_;
  graph::Graph& graph_;
  std::vector<TermNode> terms_;  // By class.
};

}  // namespace tenon::egraph
