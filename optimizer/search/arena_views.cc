// Views are merged as they arise: a Slice of a Slice, of a Split or of one piece of a Concat is one
// Slice; pieces of a Concat that lie side by side in one tensor are one piece. Elements are only
// moved, so this is exact, and no operator is added.
#include "core/base/check.h"
#include "optimizer/search/arena.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

namespace {

// A part of a tensor along one axis.
struct Part {
  NodeId of = kNoNode;
  std::int64_t begin = 0, end = 0;
};

// What part of which tensor `id` is; all of itself if it is no view along that axis.
Part PartOf(const graph::Graph& g, NodeId id, std::int64_t axis) {
  const graph::Node& n = g.node(id);
  const std::int64_t extent = n.shape()[int(axis)].constant();
  if (!n.is_input()) {
    if (const auto* slice = std::get_if<ops::Slice>(n.op.get());
        slice != nullptr && slice->axis == axis && slice->step == 1) {
      return {n.operands[0], slice->start.constant(), slice->end.constant()};
    }
    if (const auto* split = std::get_if<ops::Split>(n.op.get());
        split != nullptr && split->axis == axis) {
      return {n.operands[0], split->index * extent, (split->index + 1) * extent};
    }
  }
  return {id, 0, extent};
}

}  // namespace

std::optional<NodeId> Arena::NormalSlice(const ops::Slice& slice, NodeId of) {
  if (slice.step != 1) return std::nullopt;
  const int axis = int(slice.axis);
  std::int64_t begin = slice.start.constant(), end = slice.end.constant();
  bool changed = false;
  for (;;) {
    const std::int64_t extent = g_.shape(of)[axis].constant();
    if (begin == 0 && end == extent) return of;
    const Part part = PartOf(g_, of, axis);
    if (part.of != of) {
      begin += part.begin;
      end += part.begin;
      of = part.of;
      changed = true;
      continue;
    }
    // A part of one piece of a Concat.
    const graph::Node& n = g_.node(of);
    const auto* concat = n.is_input() ? nullptr : std::get_if<ops::Concat>(n.op.get());
    if (concat == nullptr || concat->axis != axis) break;
    std::int64_t start = 0;
    NodeId piece = kNoNode;
    for (const NodeId p : n.operands) {
      const std::int64_t stop = start + g_.shape(p)[axis].constant();
      if (start <= begin && end <= stop) {
        piece = p;
        break;
      }
      start = stop;
    }
    if (piece == kNoNode) break;
    of = piece;
    begin -= start;
    end -= start;
    changed = true;
  }
  if (!changed) return std::nullopt;
  const auto added = g_.Add(ops::Slice{.axis = axis, .start = begin, .end = end}, {of});
  CHECK(added.ok());
  return Clean(*added);
}

std::optional<NodeId> Arena::NormalConcat(const ops::Concat& concat,
                                          std::span<const NodeId> pieces) {
  const int axis = int(concat.axis);
  std::vector<Part> parts;
  bool joined = false;
  for (const NodeId p : pieces) {
    const Part part = PartOf(g_, p, axis);
    if (!parts.empty() && parts.back().of == part.of && parts.back().end == part.begin) {
      parts.back().end = part.end;
      joined = true;
    } else {
      parts.push_back(part);
    }
  }
  if (!joined && pieces.size() > 1) return std::nullopt;
  std::vector<NodeId> operands;
  for (const Part& part : parts) {
    const ops::Slice slice{.axis = axis, .start = part.begin, .end = part.end};
    if (const auto normal = NormalSlice(slice, part.of)) {
      operands.push_back(*normal);
      continue;
    }
    const auto added = g_.Add(slice, {part.of});
    CHECK(added.ok());
    operands.push_back(Clean(*added));
  }
  if (operands.size() == 1) return operands[0];
  const auto added = g_.Add(concat, operands);
  CHECK(added.ok());
  return Clean(*added);
}

NodeId Arena::AddNormal(const graph::Node& n, std::vector<NodeId> operands) {
  std::optional<NodeId> normal;
  if (const auto* slice = std::get_if<ops::Slice>(n.op.get())) {
    normal = NormalSlice(*slice, operands[0]);
  } else if (const auto* concat = std::get_if<ops::Concat>(n.op.get())) {
    normal = NormalConcat(*concat, operands);
  }
  return normal ? *normal : Clean(g_.AddTrusted(n, operands));
}

}  // namespace tenon::optimizer
