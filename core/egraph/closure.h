// Congruence closure over the terms of a graph, with a proof forest (Nieuwenhuis, Oliveras:
// Proof-Producing Congruence Closure, RTA 2005, section 3).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/egraph/vocabulary.h"
#include "core/graph/graph.h"

namespace tenon::egraph {

using TermNode = graph::NodeId;  // A node of the graph that holds the terms.

// Thread-compatible. The vocabulary and the graph outlive it.
class Closure {
 public:
  // Why two nodes are equal, if it is no application of a rule: their operands are, in this order
  // or (commutative operators) in the other one.
  static constexpr std::int32_t kCongruence = -1;
  static constexpr std::int32_t kExchanged = -2;

  // `commutative`: operators that say so are equal for exchanged operands.
  Closure(Vocabulary& vocabulary, const graph::Graph& terms, bool commutative)
      : vocabulary_(vocabulary), terms_(terms), commutative_(commutative) {}

  // Takes the nodes that are new in the graph.
  void Grow();
  // `application`: a number of the caller, at least 0, for what it knows of it.
  void Unite(TermNode a, TermNode b, std::int32_t application);

  bool Equal(TermNode a, TermNode b) const { return Find(a) == Find(b); }
  // The nodes from `a` to `b` in the forest, both included; they are equal.
  std::vector<TermNode> Path(TermNode a, TermNode b) const;
  // The application between neighbours of a path, or one of the constants.
  std::int32_t Between(TermNode a, TermNode b) const;

 private:
  struct Edge {
    TermNode to = graph::kNoNode;
    std::int32_t application = kCongruence;
  };
  struct Union {
    TermNode a, b;
    std::int32_t application;
  };

  TermNode Find(TermNode id) const { return class_[std::size_t(id)]; }
  std::vector<TermNode> ToRoot(TermNode id) const;
  void Sign(TermNode id);
  void Close();
  void Link(TermNode a, TermNode b, std::int32_t application);

  Vocabulary& vocabulary_;
  const graph::Graph& terms_;
  const bool commutative_;
  std::vector<OpId> ops_;
  std::vector<TermNode> class_;
  std::vector<std::vector<TermNode>> members_, uses_;
  std::vector<Edge> forest_;
  std::map<std::vector<std::int32_t>, TermNode> signed_;
  std::vector<Union> pending_;
};

}  // namespace tenon::egraph
