// Windows: small convex pieces of a large graph that can be rewritten on their own.
//
// A piece is convex when no path leaves it and comes back; then whatever replaces it, over the same
// inputs, closes no cycle. Most of a model's pieces repeat, so what is known of one is known of
// all: the extracted graph of a piece is the same for all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::optimizer {

// A piece of a host graph as a graph of its own: what comes from outside is an input, what is used
// outside is an output.
struct Window {
  std::vector<graph::NodeId> nodes;    // Of the host, ascending: the operators of the piece.
  std::vector<graph::NodeId> inputs;   // The host node behind each input of `graph`.
  std::vector<graph::NodeId> outputs;  // The host node that each output of `graph` computes.
  graph::Graph graph;
};

enum class Growth : std::uint8_t {
  kSiblings,    // First the nodes of the same operator that share an operand with the seed.
  kNeighbours,  // Operands and users alike, the near ones first.
};

// Finds windows in one graph, which it refers to and which must not change. Thread-compatible.
class WindowFinder {
 public:
  explicit WindowFinder(const graph::Graph& g);

  // Nodes that rules may match: operators that run, are understood, have concrete sizes and one
  // floating type. Ascending.
  const std::vector<graph::NodeId>& eligible() const { return eligible_; }

  // A convex set of at most `size` eligible nodes around the eligible node `seed`.
  std::vector<graph::NodeId> Grow(graph::NodeId seed, std::size_t size, Growth growth) const;
  // `nodes` is a convex set of eligible nodes, ascending.
  Window Extract(std::vector<graph::NodeId> nodes) const;
  // The nodes of a set whose eligible neighbours are all in the set.
  std::vector<graph::NodeId> Interior(const std::vector<graph::NodeId>& nodes) const;

 private:
  bool IsEligible(const graph::Node& n) const;
  // Adds what lies on paths between the nodes of a set; false when that takes more than `size`
  // nodes or one that is not eligible.
  bool Close(std::vector<graph::NodeId>& nodes, std::size_t size) const;
  std::vector<graph::NodeId> Siblings(graph::NodeId id) const;
  std::vector<graph::NodeId> Neighbours(graph::NodeId id) const;

  const graph::Graph& g_;
  std::vector<graph::NodeId> eligible_;
  std::vector<bool> is_eligible_, is_output_;
  std::vector<std::vector<graph::NodeId>> users_;  // Live ones, ascending, each once.
};

// The host with the window replaced by `replacement`, a graph over the inputs of window.graph whose
// outputs stand for window.outputs. What no output depends on is left out; all inputs stay.
// `moved`, if given, receives for each node of the host its node in the result, or kNoNode.
graph::Graph Splice(const graph::Graph& host, const Window& window, const graph::Graph& replacement,
                    std::vector<graph::NodeId>* moved = nullptr);

// A copy without the nodes that no output depends on; equal nodes become one.
graph::Graph Cleaned(const graph::Graph& g);

}  // namespace tenon::optimizer
