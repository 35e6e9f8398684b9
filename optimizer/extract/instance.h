// The e-graph while it is worked on: nodes die, classes and nodes keep their numbers.
#pragma once

#include <vector>

#include "optimizer/extract/problem.h"

namespace tenon::optimizer::extract {

// Thread-compatible. Copies are independent.
class Instance {
 public:
  // `problem` is valid and outlives the instance.
  explicit Instance(const Problem& problem);

  const Problem& problem() const { return *problem_; }
  int num_classes() const { return problem_->num_classes; }
  int num_nodes() const { return int(problem_->nodes.size()); }
  double cost(NodeId n) const { return problem_->nodes[std::size_t(n)].cost; }
  ClassId eclass(NodeId n) const { return problem_->nodes[std::size_t(n)].eclass; }
  // Ascending, each once.
  const std::vector<ClassId>& children(NodeId n) const { return children_[std::size_t(n)]; }
  // The living nodes of a class; the living nodes that use it. Ascending.
  const std::vector<NodeId>& nodes(ClassId c) const { return nodes_[std::size_t(c)]; }
  const std::vector<NodeId>& users(ClassId c) const { return users_[std::size_t(c)]; }
  bool alive(NodeId n) const { return alive_[std::size_t(n)] != 0; }
  int num_alive() const { return num_alive_; }

  // Takes a node out, or back in. Each pass over many nodes ends with one Refresh.
  void Kill(NodeId n);
  void Revive(NodeId n);
  void Refresh();  // Brings nodes() and users() up to date.

 private:
  const Problem* problem_;
  std::vector<std::vector<ClassId>> children_;
  std::vector<std::vector<NodeId>> nodes_, users_;
  std::vector<char> alive_;
  int num_alive_ = 0;
};

// The classes that living nodes can compute without a cycle, children before users.
std::vector<ClassId> Completable(const Instance& g);

// Is every class that the roots can reach free of cycles?
bool IsAcyclic(const Instance& g);

// Kills nodes that cannot be part of a choice from the roots: of a class that no root reaches, or
// over a class that cannot be computed without a cycle. Returns false when a root cannot be
// computed.
bool KillUseless(Instance& g);

}  // namespace tenon::optimizer::extract
