#include <algorithm>

#include "optimizer/onnx/reader.h"

namespace tenon::optimizer {

using graph::Shape;
using ops::Size;

namespace {

Size Product(const Shape& shape, int from, int to) {
  Size out = 1;
  for (int a = from; a < to; ++a) out = out * shape[a];
  return out;
}

Meaning To(Reader& r, const Shape& shape) {
  if (shape == r.shape(0)) return {r.in(0)};
  return {r.Add(ops::Reshape{.shape = shape}, {r.in(0)})};
}

}  // namespace

// An entry 0 copies the extent of the input's axis (unless allowzero), -1 takes what is left.
Meaning UnderstandReshape(Reader& r) {
  const auto target = r.ConstantInts(1);
  if (!target) return {r.Refuse("shape is not constant")};
  if (target->size() > std::size_t(base::kRankMax)) return {r.Refuse("the rank is above 8")};
  if (std::ranges::count(*target, -1) > 1) return {r.Refuse("shape has several -1")};
  const bool copies = r.opset() < 14 || r.Int("allowzero", 0) == 0;
  Shape shape;
  int rest = -1;
  Size known = 1;
  for (std::size_t a = 0; a < target->size(); ++a) {
    const std::int64_t n = (*target)[a];
    if (n < -1 || (n == 0 && (!copies || int(a) >= r.rank(0)))) {
      return {r.Refuse("shape has an entry without a meaning")};
    }
    if (n == -1) rest = int(a);
    shape.push_back(n == 0 ? r.shape(0)[int(a)] : Size(n));
    if (n != -1) known = known * shape[int(a)];
  }
  if (rest >= 0) {
    // Dividing both by the extents that were copied keeps symbols out of the division.
    Size all = 1, others = 1;
    for (int a = 0; a < r.rank(0); ++a) {
      if (std::size_t(a) >= target->size() || (*target)[std::size_t(a)] != 0) {
        all = all * r.shape(0)[a];
      }
    }
    for (std::int64_t n : *target) {
      if (n > 0) others = others * Size(n);
    }
    if (!all.valid() || !others.valid()) return {r.Refuse("a size overflows")};
    shape[rest] = r.symbols().FloorDiv(all, others);
  }
  return To(r, shape);
}

Meaning UnderstandFlatten(Reader& r) {
  const int rank = r.rank(0);
  std::int64_t axis = r.Int("axis", 1);
  if (axis < -rank || axis > rank) return {r.Refuse("axis is outside")};
  if (axis < 0) axis += rank;
  const Shape& from = r.shape(0);
  return To(r, {Product(from, 0, int(axis)), Product(from, int(axis), rank)});
}

Meaning UnderstandSqueeze(Reader& r) {
  const auto axes = r.IntsFrom(13, 1, "axes");
  if (!axes && r.opset() >= 13 && r.HasInput(1)) return {r.Refuse("axes are not constant")};
  std::vector<bool> drop(std::size_t(r.rank(0)), false);
  for (int a = 0; a < r.rank(0); ++a) {
    const Size& n = r.shape(0)[a];
    if (!axes && !n.is_constant()) return {r.Refuse("which axes it drops is known at run time")};
    drop[std::size_t(a)] = !axes && n.is_constant(1);
  }
  if (axes) {
    for (std::int64_t v : *axes) {
      const auto axis = Reader::Axis(v, r.rank(0));
      if (!axis || !r.shape(0)[int(*axis)].is_constant(1)) {
        return {r.Refuse("an axis is outside or its extent is not 1")};
      }
      drop[std::size_t(*axis)] = true;
    }
  }
  Shape shape;
  for (int a = 0; a < r.rank(0); ++a) {
    if (!drop[std::size_t(a)]) shape.push_back(r.shape(0)[a]);
  }
  return To(r, shape);
}

Meaning UnderstandUnsqueeze(Reader& r) {
  const auto axes = r.IntsFrom(13, 1, "axes");
  if (!axes) return {r.Refuse("axes are not constant")};
  const int rank = r.rank(0) + int(axes->size());
  if (rank > base::kRankMax) return {r.Refuse("the rank is above 8")};
  std::vector<bool> fresh(std::size_t(rank), false);
  for (std::int64_t v : *axes) {
    const auto axis = Reader::Axis(v, rank);
    if (!axis || fresh[std::size_t(*axis)]) return {r.Refuse("an axis is outside or repeated")};
    fresh[std::size_t(*axis)] = true;
  }
  Shape shape;
  int from = 0;
  for (int a = 0; a < rank; ++a) {
    shape.push_back(fresh[std::size_t(a)] ? Size(1) : r.shape(0)[from++]);
  }
  return To(r, shape);
}

}  // namespace tenon::optimizer
