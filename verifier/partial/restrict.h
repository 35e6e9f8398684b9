// Demand propagation: the part of a program that an interval of its output needs.
#pragma once

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "verifier/partial/regions.h"
#include "verifier/partial/sizes.h"

namespace tenon::partial {

// Adds to `g` a node that equals `node` in `range` along `axis`, and has only that: operands are
// restricted to what the range reads, down to Slices of inputs. Windows widen the range by what
// they reach beyond it (the halo), clipped to the image, with the padding that is left. Where that
// depends on sizes, `sizes` assumes something. `range` is within the axis and not empty.
//
// FailedPrecondition: names an operator through which a range cannot be followed.
StatusOr<graph::NodeId> Restrict(graph::Graph& g, Sizes& sizes, graph::NodeId node, int axis,
                                 const Interval& range);

}  // namespace tenon::partial
