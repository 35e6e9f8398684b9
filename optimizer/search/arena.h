// Arena: every node that the search has met, once.
//
// The graphs of a search differ in a few nodes each. They all live in one hash-consed graph, so a
// graph is nothing but the list of its outputs, sharing is free, and what is known of a node (its
// cost, its hash, what it can be rewritten to) is found out once and holds in every graph that
// contains it. Nodes that differ only in the order of commutative operands are one node, and views
// of views are merged as they arise (a Slice of a Slice, a Concat of the parts of a tensor): this
// is exact, costs nothing, and saves the search from meeting one tensor in many guises.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/rules/match.h"
#include "optimizer/device/device.h"
#include "optimizer/search/rule_set.h"

namespace tenon::optimizer {

// 128 bits of content: equal contents have equal hashes in every run and on every machine, and
// different ones differ but for an accident of 1 in 2^64.
struct Hash128 {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};
struct HashOfHash128 {
  std::size_t operator()(const Hash128& h) const { return std::size_t(h.low); }
};

// What a graph is rewritten to: roots[k] becomes targets[k].
struct Rewriting {
  int rule = -1;  // Index into RuleSet::entries().
  std::vector<graph::NodeId> roots, targets;
};

// Thread-compatible. Refers to the device and the rules. All sizes are concrete and no operator is
// opaque.
class Arena {
 public:
  // Begins with the nodes of `g`.
  Arena(graph::Graph g, const RuleSet& rules, const Device& device);

  const graph::Graph& graph() const { return g_; }
  // The node that stands for all nodes like `id`, made of canonical nodes. All nodes below are
  // such.
  graph::NodeId Canonical(graph::NodeId id);
  double cost(graph::NodeId id) const { return facts_[std::size_t(id)].cost; }
  const Hash128& hash(graph::NodeId id) const { return facts_[std::size_t(id)].hash; }

  // Appends the operator nodes that run at run time among those that `roots` reach, ascending.
  void Running(std::span<const graph::NodeId> roots, std::vector<graph::NodeId>& out);

  // What node `id` can be rewritten to by rules with one output. Found once; the reference holds
  // until the next call.
  const std::vector<Rewriting>& Alternatives(graph::NodeId id);

  // What rules with several outputs can do to the graph of these running nodes. Of two matches that
  // differ only in the order of the roots, one is given. Never closes a cycle: a match of which one
  // root depends on another one is refused.
  std::vector<Rewriting> JointAlternatives(std::span<const graph::NodeId> running);

  // `outputs` with every roots[k] replaced by targets[k]. `running` are the nodes the outputs
  // reach.
  std::vector<graph::NodeId> Replace(std::span<const graph::NodeId> outputs,
                                     std::span<const graph::NodeId> running,
                                     std::span<const graph::NodeId> roots,
                                     std::span<const graph::NodeId> targets);

  // Whether `id` was among the nodes of the last call of Mark. For sets of a few nodes.
  void Mark(std::span<const graph::NodeId> nodes);
  bool marked(graph::NodeId id) const;
  // The running nodes that `root` reaches without going through marked ones.
  void RunningUnmarked(graph::NodeId root, std::vector<graph::NodeId>& out);

 private:
  friend class ArenaHost;
  // What is known of an operator, whoever uses it.
  struct OperatorFacts {
    Hash128 hash;
    int skeleton = -1;                // RuleSet::Skeleton.
    std::vector<std::int64_t> sizes;  // In the order of Fields().
  };
  struct Facts {
    graph::NodeId canonical = graph::kNoNode;
    Hash128 hash;
    double cost = 0;
    const OperatorFacts* op = nullptr;  // Null for an input.
    bool clean = false;                 // Canonical, and so is everything below.
    bool alternatives_known = false;
  };
  struct HashOfKey {
    std::size_t operator()(const std::vector<std::int32_t>& key) const;
  };

  // Learns the facts of nodes that were added to the graph.
  void Learn();
  graph::NodeId Known(graph::NodeId id);
  // The canonical node of a node whose operands are clean.
  graph::NodeId Clean(graph::NodeId id);
  // A node like `n` with these clean operands, simplified, canonical and clean.
  graph::NodeId AddNormal(const graph::Node& n, std::vector<graph::NodeId> operands);
  std::optional<graph::NodeId> NormalSlice(const ops::Slice& slice, graph::NodeId of);
  std::optional<graph::NodeId> NormalConcat(const ops::Concat& concat,
                                            std::span<const graph::NodeId> pieces);
  const OperatorFacts& FactsOf(const ops::Operator& op);
  Hash128 HashNode(const graph::Node& n);
  // The canonical targets of a match, or nothing when the match is useless or does not fit.
  std::optional<std::vector<graph::NodeId>> Targets(int rule, const rules::Match& match);
  bool DependsOn(graph::NodeId node, graph::NodeId on);
  std::uint32_t NextEpoch(std::vector<std::uint32_t>& seen);

  graph::Graph g_;
  const RuleSet& rules_;
  const Device& device_;
  std::vector<Facts> facts_;
  std::vector<std::vector<Rewriting>> alternatives_;
  std::unordered_map<Hash128, graph::NodeId, HashOfHash128> by_hash_;
  std::unordered_map<const ops::Operator*, OperatorFacts> operators_;
  // Targets of joint rewritings by rule and roots.
  std::unordered_map<std::vector<std::int32_t>, std::vector<graph::NodeId>, HashOfKey> joint_;
  std::vector<std::uint32_t> seen_, marks_;
  std::uint32_t epoch_ = 0, mark_epoch_ = 0;
  std::vector<graph::NodeId> stack_, image_;
};

}  // namespace tenon::optimizer
