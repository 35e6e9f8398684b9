// Random graphs for the searches.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/optimizer/lecture_graphs.h"

namespace tenon::optimizer {

// A random graph of matrix operators over two square inputs and two weights.
inline graph::Graph RandomGraph(std::mt19937_64& random, int nodes) {
  Builder b;
  std::vector<graph::NodeId> made{b.Activation("x", {6, 6}), b.Activation("y", {6, 6}),
                                  b.Weight("v", {6, 6}), b.Weight("w", {6, 6})};
  const auto any = [&] { return made[random() % made.size()]; };
  for (int k = 0; k < nodes; ++k) {
    switch (random() % 6) {
      case 0:
      case 1:
        made.push_back(b.Add(ops::MatMul{}, {any(), any()}));
        break;
      case 2:
        made.push_back(b.Add(ops::Add{}, {any(), any()}));
        break;
      case 3:
        made.push_back(b.Add(ops::Relu{}, {any()}));
        break;
      case 4:
        made.push_back(b.Add(ops::Transpose{}, {any()}));
        break;
      default: {
        const auto both = b.Add(ops::Concat{.axis = 1}, {any(), any()});
        made.push_back(b.Add(ops::Slice{.axis = 1, .start = 3, .end = 9}, {both}));
      }
    }
  }
  std::vector<bool> used(b.g.size(), false);
  for (const auto id : made) {
    for (const auto o : b.g.node(id).operands) used[std::size_t(o)] = true;
  }
  std::vector<graph::NodeId> outputs;
  for (const auto id : made) {
    if (!used[std::size_t(id)]) outputs.push_back(id);
  }
  return b.Done(outputs);
}

}  // namespace tenon::optimizer
