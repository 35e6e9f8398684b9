// Matching rules in concrete graphs, and applying them: what the optimizer does all day.
//
// A match binds every node of the rule's matched side to a node of the graph and every symbol to an
// integer, such that the rule holds there: extents and attributes fit, the conditions hold, and all
// tensors have one floating type. Nodes with symbolic extents match no tensor variable. Operands of
// commutative operators are tried in both orders.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/rules/compiled.h"

namespace tenon::rules {

// Where a compiled rule applies. A value type; refers to nodes of one graph.
struct Match {
  std::vector<graph::NodeId> nodes;  // By node of the rule's graph; kNoNode off the matched side.
  std::vector<std::int64_t> values;  // By symbol of the rule's graph.
  graph::DataType dtype = graph::DataType::kFloat;
  friend bool operator==(const Match&, const Match&) = default;
};

// What matching needs to know of a graph beyond its nodes: who uses a node, and which nodes have an
// operator. Only nodes that the outputs depend on count. Immutable and thread-compatible; refers to
// the graph, which must not change. O(nodes) to make.
class GraphIndex {
 public:
  explicit GraphIndex(const graph::Graph& g);

  const graph::Graph& graph() const { return g_; }
  // Live operator nodes, ascending.
  const std::vector<graph::NodeId>& nodes() const { return nodes_; }
  bool live(graph::NodeId id) const { return live_[static_cast<std::size_t>(id)]; }
  // The live users of a node, ascending, each once.
  std::span<const graph::NodeId> users(graph::NodeId id) const;
  // The live nodes with an operator of this kind (ops::Operator::index()), ascending.
  std::span<const graph::NodeId> of_kind(std::size_t kind) const { return by_kind_[kind]; }

 private:
  const graph::Graph& g_;
  std::vector<graph::NodeId> nodes_;
  std::vector<bool> live_;
  std::vector<std::uint32_t> users_at_;
  std::vector<graph::NodeId> users_;
  std::vector<std::vector<graph::NodeId>> by_kind_;
};

struct MatchLimits {
  std::size_t matches = 100'000;  // More are not looked for.
};

// The matches whose first root is `root`, in a deterministic order.
std::vector<Match> MatchesAt(const CompiledRule& rule, const GraphIndex& index, graph::NodeId root,
                             const MatchLimits& limits = {});
// All matches, by ascending first root.
std::vector<Match> Matches(const CompiledRule& rule, const GraphIndex& index,
                           const MatchLimits& limits = {});

// Which rules may match at a node: rules by the operator of their first root. Thread-compatible.
class RuleIndex {
 public:
  explicit RuleIndex(std::vector<CompiledRule> rules);
  // Both directions where they compile: forward always tried, backward if the rule says `both`.
  static RuleIndex Of(std::span<const std::shared_ptr<const Rule>> rules);

  const std::vector<CompiledRule>& rules() const { return rules_; }
  // Indices into rules(), ascending.
  std::span<const int> at(const ops::Operator& op) const { return by_kind_[op.index()]; }

 private:
  std::vector<CompiledRule> rules_;
  std::vector<std::vector<int>> by_kind_;
};

// Adds what replaces the matched roots to `g`, the graph of the match, and returns its nodes, one a
// root. Users keep using the old nodes. FailedPrecondition when the new operators do not fit or the
// new tensors differ in type from the old ones, which only a rule that was never proved can cause.
StatusOr<std::vector<graph::NodeId>> BuildTarget(const CompiledRule& rule, const Match& match,
                                                 graph::Graph& g);

// The graph with the matched roots replaced, everything it no longer needs left out. All inputs
// stay, outputs keep their order. FailedPrecondition as in BuildTarget, and when the replacement
// would depend on itself: with several outputs, an input of the match may depend on a replaced
// output.
StatusOr<graph::Graph> Rewrite(const graph::Graph& g, const CompiledRule& rule, const Match& match);

}  // namespace tenon::rules
