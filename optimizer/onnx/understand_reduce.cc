#include <algorithm>

#include "optimizer/onnx/reader.h"

namespace tenon::optimizer {
namespace {

// A reduction over several axes is one over each of them: for a sum or a maximum, and for a mean
// because all slices along an axis have the same length. From the last axis on, so that dropping
// one does not renumber the others.
template <class Op>
Meaning Reduce(Reader& r, std::optional<std::vector<std::int64_t>> axes) {
  const std::int64_t keepdims = r.Int("keepdims", 1);
  std::vector<std::int64_t> list;
  if (!axes || axes->empty()) {
    if (r.Int("noop_with_empty_axes", 0) != 0) return {r.in(0)};
    for (int a = 0; a < r.rank(0); ++a) list.push_back(a);
  } else {
    for (std::int64_t v : *axes) {
      const auto axis = Reader::Axis(v, r.rank(0));
      if (!axis) return {r.Refuse("an axis is outside")};
      list.push_back(*axis);
    }
  }
  std::ranges::sort(list, std::greater<>());
  if (std::ranges::adjacent_find(list) != list.end()) return {r.Refuse("an axis is repeated")};
  graph::NodeId out = r.in(0);
  for (std::int64_t axis : list) out = r.Add(Op{.axis = axis, .keepdims = keepdims}, {out});
  return {out};
}

}  // namespace

// Before opset 13 Softmax runs over all axes from `axis` on as if they were one. That is the same
// when the others of them have extent 1.
Meaning UnderstandSoftmax(Reader& r) {
  const bool coerced = r.opset() < 13;
  const auto axis = Reader::Axis(r.Int("axis", coerced ? 1 : -1), r.rank(0));
  if (!axis) return {r.Refuse("axis is outside")};
  if (!coerced) return {r.Add(ops::Softmax{.axis = *axis}, {r.in(0)})};
  int only = r.rank(0) - 1;
  int wide = 0;
  for (int a = int(*axis); a < r.rank(0); ++a) {
    if (r.shape(0)[a].is_constant(1)) continue;
    ++wide;
    only = a;
  }
  if (wide > 1) return {r.Refuse("it runs over several axes as if they were one")};
  return {r.Add(ops::Softmax{.axis = only}, {r.in(0)})};
}

Meaning UnderstandReduceSum(Reader& r) {
  const auto axes = r.IntsFrom(13, 1, "axes");
  if (!axes && r.opset() >= 13 && r.HasInput(1)) return {r.Refuse("axes are not constant")};
  return Reduce<ops::ReduceSum>(r, axes);
}

Meaning UnderstandReduceMean(Reader& r) { return Reduce<ops::ReduceMean>(r, r.Ints("axes")); }
Meaning UnderstandReduceMax(Reader& r) { return Reduce<ops::ReduceMax>(r, r.Ints("axes")); }

Meaning UnderstandGlobalMaxPool(Reader& r) {
  if (r.rank(0) < 3) return {r.Refuse("the image has no spatial axis")};
  graph::NodeId out = r.in(0);
  for (int a = 2; a < r.rank(0); ++a) out = r.Add(ops::ReduceMax{.axis = a}, {out});
  return {out};
}

}  // namespace tenon::optimizer
