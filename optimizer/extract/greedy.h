// Choices made in one pass, and a bound that costs as little.
#pragma once

#include <span>

#include "optimizer/extract/instance.h"

namespace tenon::optimizer::extract {

// Settles classes as Dijkstra and Knuth do, the cheapest first, so the choice closes no cycle. A
// class costs what its node and the node's children cost together: what they share counts twice.
// `costs`: of each node, at least 0. A node for every class that can be computed.
Choice GreedyTree(const Instance& g, std::span<const double> costs);

// The same where what the children share counts once: each settled class keeps the set of classes
// below it, as bits (num_classes^2 / 8 bytes in all).
Choice GreedyDag(const Instance& g, std::span<const double> costs);

// What each class costs at least: a node and the dearest of its children, for the node where that
// is least (in planning: hmax). Infinite when it cannot be computed.
std::vector<double> PathBounds(const Instance& g);
// No choice is cheaper: the dearest of the roots.
double PathBound(const Instance& g);

}  // namespace tenon::optimizer::extract
