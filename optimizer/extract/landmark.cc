// Why the set is a landmark: let S be what the allowed nodes compute at the end; the target is not
// in S. Whatever computes the target uses, somewhere, a first node whose children are in S and
// whose class is not. It is not allowed, else its class were in S; so it was refused. The nodes
// with children in S and class outside of it are therefore kept, the other refused ones dropped.
#include "optimizer/extract/landmark.h"

#include <algorithm>

namespace tenon::optimizer::extract {

LandmarkFinder::LandmarkFinder(const Instance& g)
    : g_(g),
      missing_start_(std::size_t(g.num_nodes())),
      computed_(std::size_t(g.num_classes())),
      allowed_(std::size_t(g.num_nodes())) {
  for (NodeId n = 0; n < g.num_nodes(); ++n) {
    missing_start_[std::size_t(n)] = std::int32_t(g.children(n).size());
  }
}

// Allows a node whose children are computed and whose class is not, with what follows from it;
// undoes all of it and returns false when the target follows.
bool LandmarkFinder::Allow(NodeId n, ClassId target) {
  const std::size_t mark = trail_.size();
  bool reached = false;
  decremented_.clear();
  const auto compute = [&](ClassId c) {
    computed_[std::size_t(c)] = 1;
    trail_.push_back(c);
    reached = reached || c == target;
  };
  compute(g_.eclass(n));
  for (std::size_t i = mark; i < trail_.size() && !reached; ++i) {
    for (const NodeId user : g_.users(trail_[i])) {
      ++steps_;
      --missing_[std::size_t(user)];
      decremented_.push_back(user);
      const ClassId c = g_.eclass(user);
      if (missing_[std::size_t(user)] == 0 && allowed_[std::size_t(user)] &&
          !computed_[std::size_t(c)]) {
        compute(c);
        if (reached) break;
      }
    }
  }
  if (!reached) return true;
  for (const NodeId user : decremented_) ++missing_[std::size_t(user)];
  for (; trail_.size() > mark; trail_.pop_back()) computed_[std::size_t(trail_.back())] = 0;
  return false;
}

std::vector<NodeId> LandmarkFinder::Find(ClassId target, std::span<const NodeId> order) {
  missing_ = missing_start_;
  std::fill(computed_.begin(), computed_.end(), 0);
  std::fill(allowed_.begin(), allowed_.end(), 0);
  trail_.clear();
  std::vector<NodeId> refused;
  for (const NodeId n : order) {
    if (computed_[std::size_t(g_.eclass(n))] || missing_[std::size_t(n)] > 0 || Allow(n, target)) {
      allowed_[std::size_t(n)] = 1;
    } else {
      refused.push_back(n);
    }
  }
  std::erase_if(refused, [&](NodeId n) {
    return missing_[std::size_t(n)] > 0 || computed_[std::size_t(g_.eclass(n))];
  });
  std::sort(refused.begin(), refused.end());
  return refused;
}

}  // namespace tenon::optimizer::extract
