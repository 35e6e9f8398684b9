// Landmark cuts: sets of nodes of which every choice without a cycle takes one.
//
// They replace the order variables and big-M rows of the usual formulations. A solution of the
// relaxation that is fractional or cyclic computes a class from nothing; the nodes at the border of
// what it does compute show where.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimizer/extract/instance.h"

namespace tenon::optimizer::extract {

// Finds landmarks of one instance, which it refers to. Thread-compatible.
class LandmarkFinder {
 public:
  explicit LandmarkFinder(const Instance& g);

  // A set of living nodes without which `target` cannot be computed, ascending; none of them can be
  // left out of it. Allows the nodes in the given `order` as long as the target stays out of reach;
  // those that are refused are the set, so nodes that should not be in it come first. Empty when
  // nothing computes the target.
  std::vector<NodeId> Find(ClassId target, std::span<const NodeId> order);

  std::int64_t steps() const { return steps_; }  // Edges followed so far.

 private:
  bool Allow(NodeId n, ClassId target);

  const Instance& g_;
  std::vector<std::int32_t> missing_start_, missing_;
  std::vector<char> computed_, allowed_;
  std::vector<ClassId> trail_;
  std::vector<NodeId> decremented_;
  std::int64_t steps_ = 0;
};

}  // namespace tenon::optimizer::extract
