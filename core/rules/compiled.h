// CompiledRule: one side of a rule as a program for matching, the other as what is to be built.
//
// What a match has to find out is known before any graph is seen: in which order nodes are visited,
// which operands are new and which must be ones met before, which integer binds a symbol, which one
// a polynomial is solved for, and which ones are only compared. Compiling decides all that once, so
// that the matcher (core/rules/match_engine.h) neither searches an order nor undoes bindings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/poly.h"
#include "core/graph/graph.h"
#include "core/ops/operator.h"
#include "core/rules/rule.h"

namespace tenon::rules {

// Which side is matched. A rule is an equality wherever both sides are well formed and `where`
// holds, so matching its target is sound too, as long as the conditions of the source are checked;
// a compiled rule does that in both directions.
enum class Direction : std::uint8_t { kForward, kBackward };

// An operator of the matched side.
struct PatternOp {
  std::shared_ptr<const ops::Operator> op;
  ops::Operator skeleton;        // `op` with every size 0: what is left are static attributes.
  std::vector<ops::Size> sizes;  // Those sizes, in the order of Fields().
  bool symbolic = false;         // Some size mentions a symbol.
  bool commutative = false;
  bool constant = false;    // Without operands: its element type is no operand's.
  int first_attribute = 0;  // Where its sizes lie in the list of a match's attribute values.
};

// The sizes of an operator, replaced by 0, and the rest of it.
struct SplitOperator {
  ops::Operator skeleton;
  std::vector<ops::Size> sizes;
};
SplitOperator SplitSizes(const ops::Operator& op);
// Whether two operators have equal skeletons, without making them.
bool EqualButSizes(const ops::Operator& a, const ops::Operator& b);
// What stands for a size that is not constant; equals nothing and binds no symbol.
inline constexpr std::int64_t kNoSize = INT64_MIN;
// Writes the sizes in the order of SplitSizes.
void CopySizes(const ops::Operator& op, std::int64_t* out);

// One integer of a match: extent `index` of the tensor bound to input node `node`, or size `index`
// of the operator matched at `node`. It must equal a polynomial of the rule.
struct IntegerStep {
  enum class Kind : std::uint8_t {
    kConstant,  // It equals `constant`.
    kBind,      // It is the value of `symbol`.
    kSame,      // It equals the value of `symbol`, bound before.
    kSolve,     // It equals coefficient * symbol + rest, which gives `symbol`.
    kCheck,     // It equals `rest`.
  };
  Kind kind = Kind::kConstant;
  bool attribute = false;
  bool at_least_one = false;  // `symbol` is a dim.
  graph::NodeId node = graph::kNoNode;
  int index = 0;
  base::Symbol symbol = 0;
  std::int64_t constant = 0;
  base::Poly rest, coefficient;
};

// One step of the matching program.
struct MatchStep {
  struct Child {
    graph::NodeId node;
    bool first = false;  // Met here for the first time, else it must be the class found before.
    bool input = false;  // A tensor variable.
  };
  struct Climb {
    graph::NodeId parent;
    int slot;  // Which operand of `parent` the climb comes from.
  };
  // kNode: goes through the operator nodes of the class of `node` and visits the children.
  // kRoot: goes through the classes that root `node` may be: what is reached by climbing `path`
  // from the class of `from`, which is bound; without a path, every class with the right operator.
  enum class Kind : std::uint8_t { kNode, kRoot };
  Kind kind = Kind::kNode;
  graph::NodeId node = graph::kNoNode;
  std::vector<Child> children;
  std::vector<IntegerStep> integers;  // What is known after the children.
  graph::NodeId from = graph::kNoNode;
  std::vector<Climb> path;
};

// Immutable and thread-compatible. Node ids below are those of rule().graph.
class CompiledRule {
 public:
  // Nothing when that side does not determine the other one (an input or a symbol is missing, or
  // would have to be found by solving what is not linear), when it is a bare input (it would match
  // everything), when it contains an opaque operator, or when the two sides are the same; `why`, if
  // given, says which.
  static std::optional<CompiledRule> Compile(std::shared_ptr<const Rule> rule, Direction direction,
                                             std::string* why = nullptr);

  const Rule& rule() const { return *rule_; }
  const std::shared_ptr<const Rule>& shared_rule() const { return rule_; }
  Direction direction() const { return direction_; }
  // The outputs of the matched side, and what replaces each.
  const std::vector<graph::NodeId>& roots() const { return roots_; }
  const std::vector<graph::NodeId>& results() const { return results_; }

  // The first step is the kNode step of roots()[0].
  const std::vector<MatchStep>& steps() const { return steps_; }
  // Checked last, when every symbol is bound.
  const std::vector<base::Condition>& conditions() const { return conditions_; }
  // Whether the matched side contains the node.
  bool matched(graph::NodeId id) const { return matched_[static_cast<std::size_t>(id)]; }
  // The operator of a matched operator node.
  const PatternOp& pattern_op(graph::NodeId id) const {
    return pattern_ops_[static_cast<std::size_t>(op_of_[static_cast<std::size_t>(id)])];
  }
  const PatternOp& root_op() const { return pattern_op(roots_[0]); }
  // How many attribute values a match has.
  int attribute_count() const { return attribute_count_; }
  // The longest way from a root down to a node of the matched side, in edges.
  int height() const { return height_; }

 private:
  friend class Compiler;
  CompiledRule() = default;

  std::shared_ptr<const Rule> rule_;
  Direction direction_ = Direction::kForward;
  std::vector<graph::NodeId> roots_, results_;
  std::vector<MatchStep> steps_;
  std::vector<base::Condition> conditions_;
  std::vector<bool> matched_;
  std::vector<PatternOp> pattern_ops_;
  std::vector<int> op_of_;  // By node: its index in pattern_ops_, or -1.
  int attribute_count_ = 0;
  int height_ = 0;
};

}  // namespace tenon::rules
