// Layout: where the boxes of a picture stand, in layers from top to bottom.
#pragma once

#include <vector>

namespace tenon::optimizer {

struct LayoutSize {
  double width = 0, height = 0;
};
struct Point {
  double x = 0, y = 0;
};

struct Layout {
  // The centres of the boxes.
  std::vector<Point> centres;
  // One per box and operand: from the bottom of the operand to the top of the box, through the gaps
  // between the boxes of the layers it passes.
  std::vector<std::vector<std::vector<Point>>> edges;
  double width = 0, height = 0;
};

// `operands[k]` are boxes below k, so the graph is acyclic. Deterministic. O(layers x edges).
Layout LayOut(const std::vector<LayoutSize>& sizes, const std::vector<std::vector<int>>& operands);

}  // namespace tenon::optimizer
