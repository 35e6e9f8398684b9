#include "core/egraph/rule_set.h"

#include <algorithm>

namespace tenon::egraph {

using graph::NodeId;

EGraphRule::EGraphRule(Vocabulary& vocabulary, rules::CompiledRule compiled, std::int32_t number,
                       std::int64_t serial)
    : compiled_(std::move(compiled)), number_(number), serial_(serial) {
  const graph::Graph& g = compiled_.rule().graph;
  patterns_.resize(g.size());
  for (NodeId id : g.Reachable(compiled_.roots())) {
    if (g.node(id).is_input()) continue;
    const rules::PatternOp& p = compiled_.pattern_op(id);
    PatternOp& pattern = patterns_[std::size_t(id)];
    pattern.skeleton = vocabulary.InternSkeleton(p.skeleton);
    // An operator without operands exists once for each element type.
    if (!p.symbolic && !p.constant) pattern.op = vocabulary.InternOperator(*p.op);
  }
  for (NodeId id : compiled_.roots()) captures_.push_back(id);
  std::vector<std::int32_t> made(g.size(), INT32_MAX);
  for (NodeId id : compiled_.results()) results_.push_back(Build(vocabulary, id, made));
}

std::int32_t EGraphRule::Capture(NodeId id) {
  const auto at = std::find(captures_.begin(), captures_.end(), id);
  if (at == captures_.end()) {
    captures_.push_back(id);
    return static_cast<std::int32_t>(captures_.size() - 1);
  }
  return static_cast<std::int32_t>(at - captures_.begin());
}

std::int32_t EGraphRule::Build(Vocabulary& vocabulary, NodeId id, std::vector<std::int32_t>& made) {
  if (compiled_.matched(id)) return Capture(id);
  if (made[std::size_t(id)] != INT32_MAX) return made[std::size_t(id)];
  const graph::Node& n = compiled_.rule().graph.node(id);
  Step step;
  step.source = n.op.get();
  for (NodeId o : n.operands) step.operands.push_back(Build(vocabulary, o, made));
  const auto sizes = rules::SplitSizes(*n.op).sizes;
  const bool fixed =
      std::all_of(sizes.begin(), sizes.end(), [](const ops::Size& s) { return s.is_constant(); });
  if (fixed && !n.operands.empty()) {
    step.op = vocabulary.InternOperator(*n.op);
  } else {
    symbolic_ = true;
  }
  steps_.push_back(std::move(step));
  return made[std::size_t(id)] = ~static_cast<std::int32_t>(steps_.size() - 1);
}

std::int32_t RuleSet::Add(std::shared_ptr<const rules::Rule> rule, bool as_written) {
  int directions = 0;
  for (rules::Direction d : {rules::Direction::kForward, rules::Direction::kBackward}) {
    if (as_written && d == rules::Direction::kBackward && !rule->both) continue;
    if (auto compiled = rules::CompiledRule::Compile(rule, d)) {
      directions_.emplace_back(*vocabulary_, *std::move(compiled), count_, next_serial_++);
      ++directions;
    }
  }
  if (directions == 2) {
    directions_.back().has_converse_ = directions_[directions_.size() - 2].has_converse_ = true;
  }
  return count_++;
}

void RuleSet::Truncate(std::int32_t count) {
  while (!directions_.empty() && directions_.back().number() >= count) directions_.pop_back();
  count_ = std::min(count_, count);
}

int RuleSet::height() const {
  int height = 0;
  for (const EGraphRule& r : directions_) height = std::max(height, r.compiled().height());
  return height;
}

bool RuleSet::several_outputs() const {
  return std::any_of(directions_.begin(), directions_.end(),
                     [](const EGraphRule& r) { return r.compiled().roots().size() > 1; });
}

}  // namespace tenon::egraph
