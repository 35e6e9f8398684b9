// One case an operator. A range that is the whole axis needs nothing; so does the recursion end at
// inputs. What a case reads of an operand follows from the operator's definition in core/ops, and
// is not trusted: the corrected rule is proved.
#include "verifier/partial/restrict.h"

#include <type_traits>

#include <fmt/core.h>

namespace tenon::partial {

using graph::Graph;
using graph::Node;
using graph::NodeId;

namespace {

class Restriction {
 public:
  Restriction(Graph& g, Sizes& sizes) : g_(g), sizes_(sizes) {}

  StatusOr<NodeId> Of(NodeId id, int axis, const Interval& range) {
    const Node node = g_.node(id);  // A copy: the graph grows.
    const Poly extent = node.shape()[axis];
    if (Same(range.begin, 0) && Same(range.end, extent)) return id;
    if (node.is_input()) return Slice(id, axis, range);
    const auto one = [&](const auto& op) -> StatusOr<NodeId> { return By(op, node, axis, range); };
    return std::visit(one, *node.op);
  }

 private:
  using Operands = std::vector<NodeId>;

  bool Same(const Poly& a, const Poly& b) {
    return a == b || sizes_.Implied(base::Eq(a, b), g_.symbols());
  }
  bool AtLeast(const Poly& a, const Poly& b) { return sizes_.Decide(base::Ge(a, b), g_.symbols()); }

  StatusOr<NodeId> Slice(NodeId id, int axis, const Interval& range) {
    return g_.Add(ops::Slice{.axis = axis, .start = range.begin, .end = range.end}, {id});
  }

  StatusOr<NodeId> Cannot(const ops::Operator& op, int axis) {
    return base::FailedPrecondition(
        fmt::format("an interval of axis {} cannot be followed through {}", axis, ops::NameOf(op)));
  }

  // `node`'s operator on other operands.
  StatusOr<NodeId> Again(const Node& node, const Operands& operands) {
    return g_.Add(*node.op, operands, node.type->dtype);
  }

  // Operand k of a node whose output has `rank` axes, aligned from the right and broadcast.
  StatusOr<NodeId> Aligned(NodeId id, int rank, int axis, const Interval& range) {
    const graph::Shape& shape = g_.shape(id);
    const int own = axis - (rank - shape.size());
    if (own < 0 || shape[own].is_constant(1)) return id;
    return Of(id, own, range);
  }

  StatusOr<NodeId> Pointwise(const Node& node, int axis, const Interval& range) {
    Operands operands;
    for (const NodeId id : node.operands) {
      ASSIGN_OR_RETURN(const NodeId part, Aligned(id, node.shape().size(), axis, range));
      operands.push_back(part);
    }
    return Again(node, operands);
  }

  // Axis `axis` of the first operand; the other operands stay.
  StatusOr<NodeId> FirstOnly(const Node& node, int axis, const Interval& range) {
    Operands operands = node.operands;
    ASSIGN_OR_RETURN(operands[0], Of(operands[0], axis, range));
    return Again(node, operands);
  }

  template <class Op>
  StatusOr<NodeId> By(const Op& op, const Node& node, int axis, const Interval& range) {
    if constexpr (std::is_same_v<Op, ops::BatchNormalization>) {
      return axis == 1 ? Cannot(op, axis) : FirstOnly(node, axis, range);
    } else if constexpr (Op::kInfo.nature == ops::Nature::kPointwise) {
      return Pointwise(node, axis, range);
    } else if constexpr (std::is_same_v<Op, ops::ReduceSum> ||
                         std::is_same_v<Op, ops::ReduceMean> ||
                         std::is_same_v<Op, ops::ReduceMax> || std::is_same_v<Op, ops::Softmax>) {
      return op.axis == axis ? Cannot(op, axis) : FirstOnly(node, axis, range);
    } else if constexpr (std::is_same_v<Op, ops::GlobalAveragePool>) {
      return axis >= 2 ? Cannot(op, axis) : FirstOnly(node, axis, range);
    } else {
      return Cannot(op, axis);
    }
  }

  StatusOr<NodeId> By(const ops::Transpose& op, const Node& node, int axis, const Interval& range) {
    return FirstOnly(node, static_cast<int>(op.perm[axis]), range);
  }

  StatusOr<NodeId> By(const ops::Slice& op, const Node& node, int axis, const Interval& range) {
    if (op.axis != axis) return FirstOnly(node, axis, range);
    if (op.step != 1) return Cannot(op, axis);
    return Of(node.operands[0], axis, {op.start + range.begin, op.start + range.end});
  }

  StatusOr<NodeId> By(const ops::Split& op, const Node& node, int axis, const Interval& range) {
    if (op.axis != axis) return FirstOnly(node, axis, range);
    const Poly first = node.shape()[axis] * op.index;
    return Of(node.operands[0], axis, {first + range.begin, first + range.end});
  }

  StatusOr<NodeId> By(const ops::Concat& op, const Node& node, int axis, const Interval& range) {
    Operands parts;
    Poly first = 0;
    for (const NodeId id : node.operands) {
      if (op.axis != axis) {
        ASSIGN_OR_RETURN(const NodeId part, Of(id, axis, range));
        parts.push_back(part);
        continue;
      }
      const Poly extent = g_.shape(id)[axis];
      const Poly end = first + extent;
      if (!AtLeast(first, range.end) && !AtLeast(range.begin, end)) {
        const Poly from = AtLeast(range.begin, first) ? range.begin - first : Poly(0);
        const Poly to = AtLeast(end, range.end) ? range.end - first : extent;
        ASSIGN_OR_RETURN(const NodeId part, Of(id, axis, {from, to}));
        parts.push_back(part);
      }
      first = end;
    }
    return parts.size() == 1 ? StatusOr<NodeId>(parts[0]) : Again(node, parts);
  }

  StatusOr<NodeId> By(const ops::Pad& op, const Node& node, int axis, const Interval& range) {
    if (op.begins[axis].is_constant(0) && op.ends[axis].is_constant(0)) {
      return FirstOnly(node, axis, range);
    }
    const Poly extent = g_.shape(node.operands[0])[axis];
    ops::Pad pad = op;
    ASSIGN_OR_RETURN(const Interval read,
                     Clipped({range.begin - op.begins[axis], range.end - op.begins[axis]}, extent,
                             pad.begins[axis], pad.ends[axis]));
    ASSIGN_OR_RETURN(const NodeId part, Of(node.operands[0], axis, read));
    return g_.Add(pad, {part});
  }

  // The part of `wanted` within [0, extent), and how many zeros stand in for the rest.
  StatusOr<Interval> Clipped(const Interval& wanted, const Poly& extent, ops::Size& before,
                             ops::Size& after) {
    Interval read = wanted;
    before = after = 0;
    if (!AtLeast(wanted.begin, 0)) {
      before = -wanted.begin;
      read.begin = 0;
    }
    if (!AtLeast(extent, wanted.end)) {
      after = wanted.end - extent;
      read.end = extent;
    }
    if (!AtLeast(read.end, read.begin + 1)) {
      return base::FailedPrecondition("an interval of zeros only");
    }
    return read;
  }

  StatusOr<NodeId> By(const ops::MatMul& op, const Node& node, int axis, const Interval& range) {
    const int rank = node.shape().size();
    Operands operands = node.operands;
    if (axis == rank - 2) {
      ASSIGN_OR_RETURN(operands[0], Of(operands[0], g_.shape(operands[0]).size() - 2, range));
    } else if (axis == rank - 1) {
      ASSIGN_OR_RETURN(operands[1], Of(operands[1], g_.shape(operands[1]).size() - 1, range));
    } else {
      for (NodeId& id : operands) {
        ASSIGN_OR_RETURN(id, Aligned(id, rank, axis, range));
      }
    }
    return g_.Add(op, operands);
  }

  // Operand 0 of a window over its axis `axis`; `pads` becomes what is left of the padding.
  StatusOr<NodeId> Image(NodeId image, int axis, const Interval& range, const Poly& kernel,
                         const Poly& stride, const Poly& dilation, ops::Short<ops::Size>& pads) {
    const int a = axis - 2;
    const Poly first = range.begin * stride - pads[a];
    const Poly last = (range.end - 1) * stride - pads[a] + (kernel - 1) * dilation;
    const Poly extent = g_.shape(image)[axis];
    ASSIGN_OR_RETURN(const Interval read, Clipped({first, last + 1}, extent, pads[a], pads[2 + a]));
    return Of(image, axis, read);
  }

  StatusOr<NodeId> By(const ops::Conv& op, const Node& node, int axis, const Interval& range) {
    ops::Conv conv = op;
    Operands operands = node.operands;
    if (axis == 1) {
      if (!op.group.is_constant(1)) return Cannot(op, axis);
      ASSIGN_OR_RETURN(operands[1], Of(operands[1], 0, range));
      if (op.HasBias(static_cast<int>(operands.size()))) {
        ASSIGN_OR_RETURN(operands[2], Of(operands[2], 0, range));
      }
    } else if (axis == 0) {
      ASSIGN_OR_RETURN(operands[0], Of(operands[0], 0, range));
    } else {
      ASSIGN_OR_RETURN(operands[0],
                       Image(operands[0], axis, range, Poly(g_.shape(operands[1])[axis]),
                             op.strides[axis - 2], op.dilations[axis - 2], conv.pads));
    }
    if (op.residual == 1) {
      ASSIGN_OR_RETURN(operands.back(), Of(operands.back(), axis, range));
    }
    return g_.Add(conv, operands);
  }

  template <class Pool>
  StatusOr<NodeId> OfPool(const Pool& op, const Node& node, int axis, const Interval& range) {
    if (axis < 2) return FirstOnly(node, axis, range);
    Pool pool = op;
    ASSIGN_OR_RETURN(const NodeId part,
                     Image(node.operands[0], axis, range, op.kernel_shape[axis - 2],
                           op.strides[axis - 2], Poly(1), pool.pads));
    return g_.Add(pool, {part});
  }
  StatusOr<NodeId> By(const ops::AveragePool& op, const Node& node, int axis,
                      const Interval& range) {
    return OfPool(op, node, axis, range);
  }
  StatusOr<NodeId> By(const ops::MaxPool& op, const Node& node, int axis, const Interval& range) {
    return OfPool(op, node, axis, range);
  }

  Graph& g_;
  Sizes& sizes_;
};

}  // namespace

StatusOr<NodeId> Restrict(Graph& g, Sizes& sizes, NodeId node, int axis, const Interval& range) {
  return Restriction(g, sizes).Of(node, axis, range);
}

}  // namespace tenon::partial
