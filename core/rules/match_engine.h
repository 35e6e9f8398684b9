// MatchEngine: runs a compiled rule against a host. Written once for all hosts: a graph, where
// every node is a class of its own, and the e-graph, where a class holds all nodes known to be
// equal.
//
// A host offers, for classes and nodes numbered by std::int32_t:
//   class_of(node), operands(node) -> span of classes
//   Accepts(node, pattern node) -> the operator is the pattern's, sizes aside
//   CopySizes(node, int64*) -> the operator's sizes, in the order of Fields(), kNoSize for one that
//     is not constant
//   ForEachNode(class, pattern node, f) -> f(node) for the nodes of the class that may be accepted
//   ForEachWith(pattern node, f) -> the same for all nodes of the host
//   ForEachUser(class, f) -> f(node) for the nodes with that class among their operands
//   dtype(class), extents(class) -> pointer, null where they are not concrete
//   weights_only(class), both_orders() -> whether operands of commutative operators are exchanged
// f returns false to stop. "Pattern node" is a node id of the rule's graph: hosts may keep a table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rules/compiled.h"

namespace tenon::rules {

// Thread-compatible; reusable for any number of starts. Refers to the rule and the host.
template <class Host>
class MatchEngine {
 public:
  MatchEngine(const CompiledRule& rule, const Host& host)
      : rule_(rule),
        host_(host),
        classes_(rule.rule().graph.size(), -1),
        values_(rule.rule().graph.symbols().size(), 0),
        attributes_(static_cast<std::size_t>(rule.attribute_count()), 0) {}

  // Calls f() for every match whose first root is `node`; the match is what the accessors below
  // say during the call. f returns false to stop, and so does At then.
  template <class F>
  bool At(std::int32_t node, const F& f) {
    const graph::NodeId root = rule_.roots()[0];
    if (!host_.Accepts(node, root)) return true;
    classes_[std::size_t(root)] = host_.class_of(node);
    dtype_ = host_.dtype(classes_[std::size_t(root)]);
    if (!graph::IsFloating(dtype_)) return true;
    return Enter(0, node, f);
  }

  // The class matched by a node of the rule's matched side.
  std::int32_t class_at(graph::NodeId pattern_node) const {
    return classes_[std::size_t(pattern_node)];
  }
  std::span<const std::int32_t> classes() const { return classes_; }
  // The value of each symbol.
  std::span<const std::int64_t> values() const { return values_; }
  graph::DataType dtype() const { return dtype_; }

 private:
  template <class F>
  bool Step(std::size_t k, const F& f) {
    if (k == rule_.steps().size()) return !ConditionsHold() || f();
    const MatchStep& step = rule_.steps()[k];
    if (step.kind == MatchStep::Kind::kRoot) return FindRoot(k, step, f);
    return host_.ForEachNode(classes_[std::size_t(step.node)], step.node, [&](std::int32_t node) {
      return !host_.Accepts(node, step.node) || Enter(k, node, f);
    });
  }

  template <class F>
  bool Enter(std::size_t k, std::int32_t node, const F& f) {
    const MatchStep& step = rule_.steps()[k];
    const std::span<const std::int32_t> operands = host_.operands(node);
    if (operands.size() != step.children.size()) return true;
    const PatternOp& op = rule_.pattern_op(step.node);
    if (op.constant && host_.dtype(classes_[std::size_t(step.node)]) != dtype_) return true;
    if (op.symbolic) host_.CopySizes(node, &attributes_[std::size_t(op.first_attribute)]);
    if (Children(step, operands, false) && Integers(step) && !Step(k + 1, f)) return false;
    if (!op.commutative || !host_.both_orders() || operands[0] == operands[1]) return true;
    return !Children(step, operands, true) || !Integers(step) || Step(k + 1, f);
  }

  bool Children(const MatchStep& step, std::span<const std::int32_t> operands, bool exchanged) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const MatchStep::Child& child = step.children[k];
      const std::int32_t c = operands[exchanged && k < 2 ? 1 - k : k];
      std::int32_t& known = classes_[std::size_t(child.node)];
      if (!child.first) {
        if (known != c) return false;
        continue;
      }
      known = c;
      if (child.input && !FitsInput(child.node, c)) return false;
    }
    return true;
  }

  bool FitsInput(graph::NodeId id, std::int32_t c) const {
    const graph::Graph& g = rule_.rule().graph;
    const graph::Node& n = g.node(id);
    const graph::Extents* extents = host_.extents(c);
    if (extents == nullptr || extents->size() != n.shape().size()) return false;
    if (host_.dtype(c) != dtype_) return false;
    return g.input(n.input).kind != graph::InputKind::kWeight || host_.weights_only(c);
  }

  bool Integers(const MatchStep& step) {
    for (const IntegerStep& s : step.integers) {
      const std::int64_t v =
          s.attribute ? attributes_[std::size_t(rule_.pattern_op(s.node).first_attribute + s.index)]
                      : (*host_.extents(classes_[std::size_t(s.node)]))[s.index];
      if (v == kNoSize || !Integer(s, v)) return false;
    }
    return true;
  }

  bool Integer(const IntegerStep& s, std::int64_t v) {
    switch (s.kind) {
      case IntegerStep::Kind::kConstant:
        return v == s.constant;
      case IntegerStep::Kind::kSame:
        return v == values_[s.symbol];
      case IntegerStep::Kind::kBind:
        values_[s.symbol] = v;
        return !s.at_least_one || v >= 1;
      case IntegerStep::Kind::kCheck:
        return symbols().Eval(s.rest, values_) == v;
      case IntegerStep::Kind::kSolve: {
        const auto factor = symbols().Eval(s.coefficient, values_);
        const auto rest = symbols().Eval(s.rest, values_);
        std::int64_t difference = 0;
        if (!factor || !rest || *factor == 0 || __builtin_sub_overflow(v, *rest, &difference) ||
            (*factor == -1 && difference == INT64_MIN) || difference % *factor != 0) {
          return false;
        }
        values_[s.symbol] = difference / *factor;
        return !s.at_least_one || values_[s.symbol] >= 1;
      }
    }
    return false;
  }

  bool ConditionsHold() const {
    for (const base::Condition& c : rule_.conditions()) {
      if (!base::Holds(c, symbols(), values_).value_or(false)) return false;
    }
    return true;
  }

  // Different outputs are different classes: replacing one tensor twice gains nothing.
  template <class F>
  bool FindRoot(std::size_t k, const MatchStep& step, const F& f) {
    std::vector<std::int32_t> candidates;
    if (step.path.empty()) {
      host_.ForEachWith(step.node, [&](std::int32_t node) {
        candidates.push_back(host_.class_of(node));
        return true;
      });
    } else {
      candidates.push_back(classes_[std::size_t(step.from)]);
      for (const MatchStep::Climb& climb : step.path) candidates = Users(candidates, climb);
    }
    SortUnique(candidates);
    for (std::int32_t c : candidates) {
      const auto is_c = [&](graph::NodeId r) {
        return r != step.node && classes_[std::size_t(r)] == c;
      };
      const auto before = std::find(rule_.roots().begin(), rule_.roots().end(), step.node);
      if (std::any_of(rule_.roots().begin(), before, is_c)) continue;
      classes_[std::size_t(step.node)] = c;
      if (!Step(k + 1, f)) return false;
    }
    return true;
  }

  // The classes of nodes that are the climb's parent with one of `below` as that operand.
  std::vector<std::int32_t> Users(std::vector<std::int32_t>& below,
                                  const MatchStep::Climb& climb) const {
    std::vector<std::int32_t> out;
    const PatternOp& op = rule_.pattern_op(climb.parent);
    const std::size_t arity = rule_.rule().graph.node(climb.parent).operands.size();
    const std::size_t slot = std::size_t(climb.slot);
    const bool either = op.commutative && host_.both_orders() && slot < 2;
    SortUnique(below);
    for (std::int32_t c : below) {
      host_.ForEachUser(c, [&](std::int32_t node) {
        const auto operands = host_.operands(node);
        if (operands.size() == arity && host_.Accepts(node, climb.parent) &&
            (operands[slot] == c || (either && operands[1 - slot] == c))) {
          out.push_back(host_.class_of(node));
        }
        return true;
      });
    }
    return out;
  }

  static void SortUnique(std::vector<std::int32_t>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
  }

  const base::Symbols& symbols() const { return rule_.rule().graph.symbols(); }

  const CompiledRule& rule_;
  const Host& host_;
  std::vector<std::int32_t> classes_;     // By node of the rule's graph.
  std::vector<std::int64_t> values_;      // By symbol.
  std::vector<std::int64_t> attributes_;  // Sizes of matched operators.
  graph::DataType dtype_ = graph::DataType::kUndefined;
};

}  // namespace tenon::rules
