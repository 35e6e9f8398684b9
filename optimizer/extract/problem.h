// What is extracted from: an e-graph with costs, as plain numbers.
//
// An e-graph says that the nodes of a class are equal. To extract is to choose one node for each
// class that is needed, from the roots down, so that the choices close no cycle. A chosen class is
// paid once, however many others use it (the cost of a DAG, not of a tree): NP-hard, and no
// constant factor can be promised (Goharshady, Lam, Parreaux, OOPSLA 2024).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/status.h"

namespace tenon::optimizer::extract {

using ClassId = std::int32_t;  // From 0, less than Problem::num_classes.
using NodeId = std::int32_t;   // An index of Problem::nodes.
inline constexpr NodeId kNoNode = -1;

// One way to get the value of a class, from the values of others.
struct Node {
  ClassId eclass = 0;
  double cost = 0;  // Finite, at least 0, in any unit.
  std::vector<ClassId> children;
};

struct Problem {
  ClassId num_classes = 0;
  std::vector<Node> nodes;
  std::vector<ClassId> roots;  // All of them must be had. May be empty.
};

// InvalidArgument that names the node and what is wrong with it; OK else.
Status Validate(const Problem& problem);

// The node that is chosen for each class, or kNoNode.
using Choice = std::vector<NodeId>;

// What a choice costs: the sum over the classes that the roots need, each once. Nothing when a
// needed class has no choice or another class's node, or when the choices close a cycle. It knows
// nothing of how the choice was made: no result leaves the room without it.
std::optional<double> Cost(const Problem& problem, const Choice& choice);

// `choice` without the classes that the roots do not need. The choice has a cost.
Choice Needed(const Problem& problem, const Choice& choice);

}  // namespace tenon::optimizer::extract
