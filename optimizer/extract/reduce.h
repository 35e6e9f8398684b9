// Fewer nodes to choose from.
#pragma once

#include "optimizer/extract/instance.h"

namespace tenon::optimizer::extract {

// Kills nodes that no choice cheaper than `upper_bound` needs, until nothing changes:
//   - useless ones (KillUseless);
//   - those whose own class one of their children cannot avoid;
//   - those that a node of their class replaces at no greater cost, over classes that they need
//     anyway;
//   - those too dear with all that they and the roots cannot avoid, or on every path from a root
//     through them down to the leaves.
// A choice cheaper than `upper_bound` exists before if and only if one of the same cost or less
// exists after.
void Reduce(Instance& g, double upper_bound);

}  // namespace tenon::optimizer::extract
