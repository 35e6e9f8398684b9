// RuleSet: rules prepared for e-graphs of one vocabulary.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/egraph/vocabulary.h"
#include "core/rules/compiled.h"

namespace tenon::egraph {

// One direction of a rule, with its operators as numbers. Immutable.
class EGraphRule {
 public:
  EGraphRule(Vocabulary& vocabulary, rules::CompiledRule compiled, std::int32_t number,
             std::int64_t serial);

  const rules::CompiledRule& compiled() const { return compiled_; }
  // The rule's number in its set; both directions have the same.
  std::int32_t number() const { return number_; }
  // Different for all directions that a set ever had.
  std::int64_t serial() const { return serial_; }

  // An operator of the matched side: exactly `op`, or (op < 0) any with the skeleton.
  struct PatternOp {
    OpId op = -1;
    std::int32_t skeleton = -1;
  };
  const PatternOp& pattern(graph::NodeId id) const { return patterns_[std::size_t(id)]; }
  const PatternOp& root() const { return pattern(compiled_.roots()[0]); }

  // What is built: operands >= 0 are indices into captures(), others ~index of an earlier step.
  struct Step {
    OpId op = -1;                           // -1: sizes or the element type depend on the match.
    const ops::Operator* source = nullptr;  // The operator, with its symbols.
    std::vector<std::int32_t> operands;
  };
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<std::int32_t>& results() const { return results_; }  // As operands.
  // The nodes of the matched side whose classes building needs: the roots, then what is shared.
  const std::vector<graph::NodeId>& captures() const { return captures_; }
  // Building needs the values of symbols.
  bool symbolic() const { return symbolic_; }
  // Whether it has to be matched everywhere although only some classes have changed. Without new
  // nodes, a match can be without effect at first (what it builds is not there) and have one later.
  // The other direction sees that, if there is one. Several roots may lie far apart.
  bool everywhere(bool create) const {
    if (compiled_.roots().size() > 1) return true;
    return !create && !steps_.empty() && !has_converse_;
  }

 private:
  friend class RuleSet;
  std::int32_t Capture(graph::NodeId id);
  std::int32_t Build(Vocabulary& vocabulary, graph::NodeId id, std::vector<std::int32_t>& made);

  rules::CompiledRule compiled_;
  std::int32_t number_;
  std::int64_t serial_;
  std::vector<PatternOp> patterns_;  // By node of the rule's graph.
  std::vector<Step> steps_;
  std::vector<std::int32_t> results_;
  std::vector<graph::NodeId> captures_;
  bool symbolic_ = false;
  bool has_converse_ = false;
};

// Thread-compatible. The vocabulary must outlive it.
class RuleSet {
 public:
  explicit RuleSet(Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

  // Adds a rule in every direction in which it can be matched; returns its number. An e-graph knows
  // equalities only, so the target is matched as well even if the rule does not say `both`: the
  // conditions of the source are checked either way.
  std::int32_t Add(std::shared_ptr<const rules::Rule> rule) { return Add(std::move(rule), false); }
  // The same, but the target is matched only if the rule says `both`: for owners that want what the
  // rule was made for, and no more.
  std::int32_t AddAsWritten(std::shared_ptr<const rules::Rule> rule) {
    return Add(std::move(rule), true);
  }
  // Takes the rules numbered `count` and above out again.
  void Truncate(std::int32_t count);

  std::int32_t count() const { return count_; }
  // All directions, by ascending rule number. Elements stay where they are.
  const std::deque<EGraphRule>& directions() const { return directions_; }
  // The longest pattern, in edges.
  int height() const;
  // Some rule has several outputs, so matching needs to know who uses a class.
  bool several_outputs() const;
  Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  std::int32_t Add(std::shared_ptr<const rules::Rule> rule, bool as_written);

  Vocabulary* vocabulary_;
  std::deque<EGraphRule> directions_;
  std::int32_t count_ = 0;
  std::int64_t next_serial_ = 0;
};

}  // namespace tenon::egraph
