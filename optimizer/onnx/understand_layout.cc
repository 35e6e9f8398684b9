#include <algorithm>
#include <limits>

#include "optimizer/onnx/reader.h"

namespace tenon::optimizer {

using graph::NodeId;
using ops::Size;

Meaning UnderstandTranspose(Reader& r) {
  ops::Transpose op{.perm = {}};
  if (const auto perm = r.Ints("perm")) {
    if (int(perm->size()) != r.rank(0)) return {r.Refuse("perm differs from the rank")};
    for (std::int64_t p : *perm) op.perm.push_back(p);
  } else {
    for (int a = r.rank(0); a-- > 0;) op.perm.push_back(a);
  }
  return {r.Add(op, {r.in(0)})};
}

Meaning UnderstandConcat(Reader& r) {
  const auto axis = Reader::Axis(r.Int("axis", 0), r.rank(0));
  if (!axis || !r.HasAttr("axis")) return {r.Refuse("axis is missing or outside")};
  std::vector<NodeId> operands;
  for (int k = 0; k < r.input_count(); ++k) operands.push_back(r.in(k));
  if (operands.size() == 1) return {operands[0]};
  return {r.Add(ops::Concat{.axis = *axis}, operands)};
}

// Equal parts are Splits, others Slices.
Meaning UnderstandSplit(Reader& r) {
  const auto axis = Reader::Axis(r.Int("axis", 0), r.rank(0));
  if (!axis) return {r.Refuse("axis is outside")};
  const auto lengths = r.IntsFrom(13, 1, "split");
  if (!lengths && r.opset() >= 13 && r.HasInput(1)) return {r.Refuse("split is not constant")};
  const auto parts = std::int64_t(r.output_count());
  const bool equal =
      !lengths || std::ranges::all_of(*lengths, [&](std::int64_t n) { return n == (*lengths)[0]; });
  if (lengths && std::int64_t(lengths->size()) != parts) {
    return {r.Refuse("split differs from the number of outputs")};
  }
  const Size& whole = r.shape(0)[int(*axis)];
  std::int64_t total = 0;
  for (int k = 0; lengths && k < parts; ++k) {
    const std::int64_t n = (*lengths)[std::size_t(k)];
    if (n < 1 || n > std::numeric_limits<std::int32_t>::max()) return {r.Refuse("a part is empty")};
    total += n;
  }
  if (lengths && !whole.is_constant(total)) return {r.Refuse("the parts do not make the whole")};
  Meaning out;
  std::int64_t start = 0;
  for (std::int64_t k = 0; k < parts; ++k) {
    if (equal && parts == 1) {
      out.push_back(r.in(0));
    } else if (equal) {
      out.push_back(r.Add(ops::Split{.axis = *axis, .parts = parts, .index = k}, {r.in(0)}));
    } else {
      const std::int64_t end = start + (*lengths)[std::size_t(k)];
      out.push_back(r.Add(ops::Slice{.axis = *axis, .start = start, .end = end}, {r.in(0)}));
      start = end;
    }
  }
  return out;
}

namespace {

// ONNX's bound on an axis: negative ones count from the end, and what is outside is clamped.
// Nothing when that depends on a symbol.
std::optional<Size> Bound(std::int64_t bound, const Size& extent) {
  if (extent.is_constant()) {
    const std::int64_t n = extent.constant();
    return Size(std::clamp<std::int64_t>(bound < 0 ? bound + n : bound, 0, n));
  }
  if (bound == 0) return Size(0);
  if (bound >= std::numeric_limits<std::int32_t>::max()) return extent;  // "To the end".
  return std::nullopt;
}

}  // namespace

Meaning UnderstandSlice(Reader& r) {
  const auto starts = r.IntsFrom(10, 1, "starts"), ends = r.IntsFrom(10, 2, "ends");
  auto axes = r.IntsFrom(10, 3, "axes"), steps = r.IntsFrom(10, 4, "steps");
  if (!starts || !ends || (r.HasInput(3) && !axes) || (r.HasInput(4) && !steps)) {
    return {r.Refuse("starts, ends, axes or steps are not constant")};
  }
  const std::size_t n = starts->size();
  if (!axes) {
    axes.emplace();
    for (std::size_t k = 0; k < n; ++k) axes->push_back(std::int64_t(k));
  }
  if (!steps) steps.emplace(n, 1);
  if (ends->size() != n || axes->size() != n || steps->size() != n) {
    return {r.Refuse("starts, ends, axes and steps differ in length")};
  }
  NodeId out = r.in(0);
  std::vector<bool> seen(std::size_t(r.rank(0)), false);
  for (std::size_t k = 0; k < n; ++k) {
    const auto axis = Reader::Axis((*axes)[k], r.rank(0));
    if (!axis || seen[std::size_t(*axis)]) return {r.Refuse("an axis is outside or repeated")};
    seen[std::size_t(*axis)] = true;
    if ((*steps)[k] < 1) return {r.Refuse("a step is below 1")};
    const Size& extent = r.shape(0)[int(*axis)];
    const auto start = Bound((*starts)[k], extent), end = Bound((*ends)[k], extent);
    if (!start || !end) return {r.Refuse("a bound depends on a symbolic size")};
    if (start->is_constant(0) && *end == extent && (*steps)[k] == 1) continue;  // All of it.
    out =
        r.Add(ops::Slice{.axis = *axis, .start = *start, .end = *end, .step = (*steps)[k]}, {out});
  }
  return {out};
}

Meaning UnderstandPad(Reader& r) {
  if (r.String("mode", "constant") != "constant") return {r.Refuse("mode is not constant")};
  const auto pads = r.IntsFrom(11, 1, "pads");
  if (!pads || int(pads->size()) != 2 * r.rank(0)) return {r.Refuse("pads are not constant")};
  // The value: an attribute, then an input; 0 when left out.
  if (r.opset() < 11 && r.Float("value", 0) != 0) return {r.Refuse("the padding is not 0")};
  if (r.opset() >= 11 && r.HasInput(2) && r.ConstantScalar(2) != 0) {
    return {r.Refuse("the padding is not known to be 0")};
  }
  ops::Pad op;
  for (int a = 0; a < r.rank(0); ++a) {
    op.begins.push_back((*pads)[std::size_t(a)]);
    op.ends.push_back((*pads)[std::size_t(a + r.rank(0))]);
  }
  for (std::int64_t p : *pads) {
    if (p < 0 || p > std::numeric_limits<std::int32_t>::max()) {
      return {r.Refuse("a pad is negative or absurd")};
    }
  }
  return {r.Add(op, {r.in(0)})};
}

}  // namespace tenon::optimizer
