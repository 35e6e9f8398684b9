// Space: the graphs that an e-graph of a piece holds, priced by a device, as extraction takes them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/egraph/egraph.h"
#include "core/graph/graph.h"
#include "optimizer/device/device.h"
#include "optimizer/extract/problem.h"

namespace tenon::optimizer {

// What depends on weights only is computed before run time, so it costs nothing and is no part of
// the problem: of such a class, one program that needs weights only is fixed, one of the shortest.
// Inputs are no part of it either.
//
// Thread-compatible. Refers to the e-graph, which must be rebuilt and not change.
class Space {
 public:
  // `piece` is the graph that the e-graph began with, `roots` the classes of its outputs. Nodes
  // that alone cost more than `limit_us` are left out. `late` is asked before each price, for a
  // device may measure; once it says so, the nodes that have no price yet are left out, too.
  Space(const egraph::EGraph& g, const graph::Graph& piece, std::span<const egraph::ClassId> roots,
        const Device& device, double limit_us, const std::function<bool()>& late = {});

  // No node was left out for being late.
  bool complete() const { return complete_; }
  const extract::Problem& problem() const { return problem_; }
  // What the problem's costs exceed the device's by, at most, for a whole choice: each node costs a
  // trifle more, so that of two equal graphs the smaller one is cheaper.
  double surcharge_us() const { return trifle_us_ * double(problem_.num_classes); }

  // The graph of a choice that has a cost: inputs and outputs as the piece has them.
  graph::Graph Build(const extract::Choice& choice) const;

 private:
  void FixKnown();
  void Number(std::span<const egraph::ClassId> roots);
  double Price(egraph::NodeId n) const;
  bool IsLeaf(egraph::ClassId c) const { return known_[std::size_t(c)] >= 0; }

  const egraph::EGraph& g_;
  const graph::Graph& piece_;
  const Device& device_;
  const double trifle_us_;
  std::vector<egraph::ClassId> roots_;
  std::vector<std::vector<egraph::NodeId>> nodes_;  // By class.
  std::vector<egraph::NodeId> known_;     // By class: the node of a leaf of the problem, or -1.
  std::vector<extract::ClassId> number_;  // By class, or -1.
  std::vector<egraph::NodeId> node_of_;   // By node of the problem.
  extract::Problem problem_;
  bool complete_ = true;
};

}  // namespace tenon::optimizer
