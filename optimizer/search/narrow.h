// Pieces of a large graph, cut where few tensors cross.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "optimizer/search/window.h"

namespace tenon::optimizer {

// Cuts the eligible nodes of a graph into pieces of at most `size` nodes each; together they are
// all of them. Each piece is convex, and stays so when others are replaced: a piece is a stretch of
// one order of the nodes, operands first. `avoid`: nodes after which there should be no cut, the
// last ones of pieces of before; a cut elsewhere is taken where there is one. Nodes of a piece
// ascend. O(nodes * size).
std::vector<std::vector<graph::NodeId>> CutNarrowly(const graph::Graph& g,
                                                    const WindowFinder& finder, std::size_t size,
                                                    std::span<const graph::NodeId> avoid = {});

}  // namespace tenon::optimizer
