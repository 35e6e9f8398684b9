// Extraction as a linear program, solved by Clp, and as an integer program, solved by CBC.
//
// Columns: x_n, is node n taken; y_c, is class c needed. Minimise the cost of taken nodes where
//   y_root = 1,   sum of x_n over the nodes of c = y_c,
//   sum of x_n over the nodes of c with child d <= y_d   for each class c and child d.
// That leaves cycles in: cuts take them out. Other rows could not: with order variables and big-M,
// CBC found no solution of the e-graphs of real networks in a minute.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/extract/instance.h"
#include "optimizer/extract/stop.h"

namespace tenon::optimizer::extract {

// sum of x over `nodes` >= y of `eclass`, or <=.
struct Cut {
  enum class Sense : std::uint8_t { kAtLeast, kAtMost };
  std::vector<NodeId> nodes;
  ClassId eclass = 0;
  Sense sense = Sense::kAtLeast;
};

// Thread-compatible; integer solves of a process take turns, since CBC keeps global state.
class Program {
 public:
  // Over the living nodes of `g`, which must outlive it. `scale` > 0: costs are divided by it, so
  // that tolerances mean the same for every unit. `needed`: classes that must be had.
  Program(const Instance& g, double scale, const std::vector<ClassId>& needed);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Dead nodes and classes without nodes are left out of it.
  void Add(const std::vector<Cut>& cuts);
  // Takes out the cuts that do not bind at the last solution; returns those that stay.
  std::vector<Cut> DropSlackCuts();
  void Forbid(NodeId n);  // x_n = 0.

  enum class Outcome : std::uint8_t { kOptimal, kInfeasible, kStopped };
  // The linear program, from the last basis. When kOptimal, what follows holds its solution.
  Outcome Solve(const Stop& stop);
  double objective() const;  // A lower bound, up to rounding.
  double taken(NodeId n) const;
  double needed(ClassId c) const;
  double reduced_cost(NodeId n) const;

  struct Integer {
    bool finished = false;  // The search is complete: nothing is cheaper than `bound`.
    bool found = false;     // `taken` is a solution, perhaps with cycles.
    double bound = 0;       // 0 when nothing is known.
    std::vector<NodeId> taken;
  };
  // Branch and cut for solutions cheaper than `cutoff`, in at most `max_branches` nodes of its
  // tree. Neither the linear program nor its solution changes. When a stop was asked for, the
  // answer is empty.
  Integer SolveInteger(double cutoff, int max_branches, const Stop& stop) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::optimizer::extract
