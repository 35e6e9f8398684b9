#include <limits>

#include "optimizer/onnx/reader.h"

namespace tenon::optimizer {
namespace {

using ops::Short;
using ops::Size;

struct WindowAttrs {
  Short<Size> strides{1, 1}, dilations{1, 1}, pads{0, 0, 0, 0};
  bool ok = false;
};

// Reads a list of `n` attributes, each between `low` and 2^31.
bool ReadSizes(const Reader& r, const char* attr, int n, std::int64_t low, Short<Size>& out) {
  const auto values = r.Ints(attr);
  if (!values) return true;
  if (int(values->size()) != n) return false;
  out = {};
  for (std::int64_t v : *values) {
    if (v < low || v > std::numeric_limits<std::int32_t>::max()) return false;
    out.push_back(v);
  }
  return true;
}

// The pads that auto_pad SAME_* stands for: as many outputs as strides fit, rounded up; the odd row
// goes to the end for SAME_UPPER. It depends on the image, so that must be known. (AveragePool's
// and MaxPool's dilation is 1 here.)
bool ResolveSame(const Reader& r, const Short<Size>& kernel, bool upper, WindowAttrs& w) {
  for (int a = 0; a < 2; ++a) {
    const Size& image = r.shape(0)[2 + a];
    if (!image.is_constant() || !kernel[a].is_constant()) return false;
    const std::int64_t n = image.constant(), stride = w.strides[a].constant();
    const std::int64_t reach = (kernel[a].constant() - 1) * w.dilations[a].constant() + 1;
    const std::int64_t outputs = (n + stride - 1) / stride;
    const std::int64_t all = std::max<std::int64_t>(0, (outputs - 1) * stride + reach - n);
    const std::int64_t small = all / 2, large = all - small;
    w.pads[a] = upper ? small : large;
    w.pads[2 + a] = upper ? large : small;
  }
  return true;
}

WindowAttrs ReadWindow(Reader& r, const Short<Size>& kernel) {
  WindowAttrs w;
  if (!ReadSizes(r, "strides", 2, 1, w.strides) || !ReadSizes(r, "dilations", 2, 1, w.dilations)) {
    r.Refuse("strides or dilations are not two positive numbers");
    return w;
  }
  const std::string pad = r.String("auto_pad", "NOTSET");
  if (pad == "NOTSET" || pad.empty()) {
    w.ok = ReadSizes(r, "pads", 4, 0, w.pads);
    if (!w.ok) r.Refuse("pads are not four numbers from 0 on");
  } else if (pad == "SAME_UPPER" || pad == "SAME_LOWER") {
    w.ok = ResolveSame(r, kernel, pad == "SAME_UPPER", w);
    if (!w.ok) r.Refuse("what auto_pad means is known at run time only");
  } else {
    w.ok = pad == "VALID";
    if (!w.ok) r.Refuse("auto_pad is unknown");
  }
  return w;
}

// What both pools share; kernel_shape is required.
std::optional<WindowAttrs> ReadPool(Reader& r, Short<Size>& kernel) {
  if (r.rank(0) != 4) r.Refuse("the image has not two spatial axes");
  if (r.Int("ceil_mode", 0) != 0) r.Refuse("ceil_mode is set");
  if (!ReadSizes(r, "kernel_shape", 2, 1, kernel) || !r.HasAttr("kernel_shape")) {
    r.Refuse("kernel_shape is not two numbers");
  }
  if (!r.refusal().empty()) return std::nullopt;
  const WindowAttrs w = ReadWindow(r, kernel);
  if (w.ok && !(w.dilations[0].is_constant(1) && w.dilations[1].is_constant(1))) {
    r.Refuse("the pool is dilated");
  }
  return r.refusal().empty() ? std::optional(w) : std::nullopt;
}

}  // namespace

Meaning UnderstandConv(Reader& r) {
  if (r.rank(0) != 4 || r.rank(1) != 4) return {r.Refuse("the image has not two spatial axes")};
  const Short<Size> kernel{r.shape(1)[2], r.shape(1)[3]};
  Short<Size> declared = kernel;
  if (!ReadSizes(r, "kernel_shape", 2, 1, declared) || !(declared == kernel)) {
    return {r.Refuse("kernel_shape differs from the kernel")};
  }
  const WindowAttrs w = ReadWindow(r, kernel);
  if (!w.ok) return {graph::kNoNode};
  std::vector<graph::NodeId> operands{r.in(0), r.in(1)};
  if (r.HasInput(2)) operands.push_back(r.in(2));
  return {r.Add(ops::Conv{.strides = w.strides,
                          .pads = w.pads,
                          .dilations = w.dilations,
                          .group = r.Int("group", 1)},
                operands)};
}

Meaning UnderstandAveragePool(Reader& r) {
  Short<Size> kernel{1, 1};
  const auto w = ReadPool(r, kernel);
  if (!w) return {graph::kNoNode};
  return {r.Add(ops::AveragePool{.kernel_shape = kernel,
                                 .strides = w->strides,
                                 .pads = w->pads,
                                 .count_include_pad = r.Int("count_include_pad", 0)},
                {r.in(0)})};
}

Meaning UnderstandMaxPool(Reader& r) {
  if (r.HasOutput(1)) return {r.Refuse("the positions of the maxima are an output")};
  Short<Size> kernel{1, 1};
  const auto w = ReadPool(r, kernel);
  if (!w) return {graph::kNoNode};
  return {r.Add(ops::MaxPool{.kernel_shape = kernel, .strides = w->strides, .pads = w->pads},
                {r.in(0)})};
}

}  // namespace tenon::optimizer
