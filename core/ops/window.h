// Operators over sliding windows of images [N, C, H, W]. Padding is explicit: pads is [top, left,
// bottom, right]; SAME_UPPER and the like are resolved by the importer, because a rule about them
// is true or false depending on how they round.
#pragma once

#include "core/ops/info.h"

namespace tenon::ops {

// Where a window lies: axis 0 is vertical, 1 horizontal.
struct Window {
  const Short<Size>& strides;
  const Short<Size>& pads;
  const Short<Size>* dilations = nullptr;  // None: 1.

  bool HasForm() const {
    return strides.size() == 2 && pads.size() == 4 &&
           (dilations == nullptr || dilations->size() == 2);
  }
  template <Domain D>
  typename D::Index Dilation(D& d, int axis) const {
    return dilations == nullptr ? d.Const(1) : d.Value((*dilations)[axis]);
  }
  // The output extent for an input extent and a kernel extent; requires at least one window.
  template <Domain D>
  typename D::Index Out(D& d, int axis, const typename D::Index& in,
                        const typename D::Index& kernel) const {
    const typename D::Index stride = d.Value(strides[axis]), dilation = Dilation(d, axis);
    const typename D::Index before = d.Value(pads[axis]), after = d.Value(pads[2 + axis]);
    d.Require(d.Le(d.Const(1), kernel), "the kernel is empty");
    d.Require(d.Le(d.Const(1), stride), "a stride is below 1");
    d.Require(d.Le(d.Const(1), dilation), "a dilation is below 1");
    d.Require(d.Le(d.Const(0), before), "a pad is below 0");
    d.Require(d.Le(d.Const(0), after), "a pad is below 0");
    const typename D::Index slack =
        in + before + after - dilation * (kernel - d.Const(1)) - d.Const(1);
    d.Require(d.Le(d.Const(0), slack), "the kernel is larger than the padded image");
    return d.FloorDiv(slack, stride) + d.Const(1);
  }
  // The input position that kernel position k of output position i reads; may be in the padding.
  template <Domain D>
  typename D::Index Read(D& d, int axis, const typename D::Index& i,
                         const typename D::Index& k) const {
    return i * d.Value(strides[axis]) + k * Dilation(d, axis) - d.Value(pads[axis]);
  }
};

template <Domain D>
typename D::Bool InImage(D& d, const typename D::Index& h, const typename D::Index& height,
                         const typename D::Index& w, const typename D::Index& width) {
  return d.And(d.And(d.Le(d.Const(0), h), d.Lt(h, height)),
               d.And(d.Le(d.Const(0), w), d.Lt(w, width)));
}

template <Domain D>
typename D::Scalar Activate(D& d, Activation activation, const typename D::Scalar& x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return d.Apply(Fn::kRelu, x);
    case Activation::kSigmoid:
      return d.Apply(Fn::kSigmoid, x);
    case Activation::kTanh:
      return d.Apply(Fn::kTanh, x);
  }
  return x;
}

// Conv: cross-correlation of x [N, C, H, W] with w [F, C/group, h, w], then + bias [F] if a third
// operand is there, then + the last operand (of the output's shape) if `residual` is 1, then the
// activation. So the operands are x, w [, bias] [, residual].
struct Conv {
  static constexpr Info kInfo{.wire_id = 40,
                              .name = "Conv",
                              .arity_min = 2,
                              .arity_max = 4,
                              .nature = Nature::kReduction,
                              .onnx = {"Conv", 1}};
  static constexpr auto Fields() {
    return std::tuple{
        Field{1, "strides", &Conv::strides},     Field{2, "pads", &Conv::pads},
        Field{3, "dilations", &Conv::dilations}, Field{4, "group", &Conv::group},
        Field{5, "residual", &Conv::residual},   Field{6, "activation", &Conv::activation}};
  }
  bool operator==(const Conv&) const = default;

  Short<Size> strides{1, 1};
  Short<Size> pads{0, 0, 0, 0};
  Short<Size> dilations{1, 1};
  Size group = 1;
  std::int64_t residual = 0;
  Activation activation = Activation::kNone;

  bool HasBias(int operands) const { return operands - residual == 3; }

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    const Window window{strides, pads, &dilations};
    if (!d.Static(window.HasForm(), "strides, dilations need 2 entries and pads 4")) return {};
    if (!d.Static(residual == 0 || residual == 1, "residual is not 0 or 1")) return {};
    if (!d.Static(in.size() - residual == 2 || in.size() - residual == 3,
                  "operands are x, w [, bias] [, residual]")) {
      return {};
    }
    if (!d.Static(in.rank(0) == 4 && in.rank(1) == 4, "image and kernel have rank 4")) return {};
    const typename D::Index groups = d.Value(group), filters = in.extent(1, 0);
    d.Require(d.Le(d.Const(1), groups), "group is below 1");
    d.Require(d.Eq(in.extent(0, 1), groups * in.extent(1, 1)), "channels differ from the kernel's");
    d.Require(d.Eq(d.FloorDiv(filters, groups) * groups, filters), "group does not divide filters");
    Extents<D> out = in.extents(0);
    out[1] = filters;
    for (int a = 0; a < 2; ++a) {
      out[2 + a] = window.Out(d, a, in.extent(0, 2 + a), in.extent(1, 2 + a));
    }
    if (HasBias(in.size())) {
      if (!d.Static(in.rank(2) == 1, "the bias has rank 1")) return {};
      d.Require(d.Eq(in.extent(2, 0), filters), "the bias differs from the filters");
    }
    if (residual == 1) {
      const int last = in.size() - 1;
      if (!d.Static(in.rank(last) == 4, "the residual has rank 4")) return {};
      for (int a = 0; a < 4; ++a) {
        d.Require(d.Eq(in.extent(last, a), out[a]), "the residual differs from the output");
      }
    }
    return out;
  }

  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    using Index = typename D::Index;
    const Window window{strides, pads, &dilations};
    const Index groups = d.Value(group), channels = in.extent(1, 1);
    auto sum = d.Block(at[1], groups, d.FloorDiv(in.extent(1, 0), groups), [&](const Index& block) {
      return d.Sum(in.extent(1, 2), [&](const Index& r) {
        return d.Sum(in.extent(1, 3), [&](const Index& s) {
          const Index h = window.Read(d, 0, at[2], r), w = window.Read(d, 1, at[3], s);
          return d.Select(
              InImage(d, h, in.extent(0, 2), w, in.extent(0, 3)),
              [&] {
                return d.Sum(channels, [&](const Index& c) {
                  return d.Mul(in(0, {at[0], block * channels + c, h, w}), in(1, {at[1], c, r, s}));
                });
              },
              [&] { return d.Lit(0); });
        });
      });
    });
    if (HasBias(in.size())) sum = d.Add(sum, in(2, {at[1]}));
    if (residual == 1) sum = d.Add(sum, in(in.size() - 1, at));
    return Activate(d, activation, sum);
  }
};

// The parts that both pools share. Every window must touch the image, so pads are below the kernel.
template <Domain D, class In>
Extents<D> InferPool(D& d, const In& in, const Short<Size>& kernel, const Window& window) {
  if (!d.Static(window.HasForm() && kernel.size() == 2,
                "kernel_shape, strides need 2 entries and pads 4")) {
    return {};
  }
  if (!d.Static(in.rank(0) == 4, "the image has rank 4")) return {};
  Extents<D> out = in.extents(0);
  for (int a = 0; a < 2; ++a) {
    const typename D::Index k = d.Value(kernel[a]);
    d.Require(d.Lt(d.Value(window.pads[a]), k), "a pad is not below the kernel");
    d.Require(d.Lt(d.Value(window.pads[2 + a]), k), "a pad is not below the kernel");
    out[2 + a] = window.Out(d, a, in.extent(0, 2 + a), k);
  }
  return out;
}

// AveragePool: the mean over the window; with count_include_pad the padding counts as zeros,
// without it only elements of the image count.
struct AveragePool {
  static constexpr Info kInfo{.wire_id = 41,
                              .name = "AveragePool",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kReduction,
                              .onnx = {"AveragePool", 7}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "kernel_shape", &AveragePool::kernel_shape},
                      Field{2, "strides", &AveragePool::strides},
                      Field{3, "pads", &AveragePool::pads},
                      Field{4, "count_include_pad", &AveragePool::count_include_pad}};
  }
  bool operator==(const AveragePool&) const = default;

  Short<Size> kernel_shape{1, 1};
  Short<Size> strides{1, 1};
  Short<Size> pads{0, 0, 0, 0};
  std::int64_t count_include_pad = 0;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(count_include_pad == 0 || count_include_pad == 1,
                  "count_include_pad is not 0 or 1")) {
      return {};
    }
    return InferPool(d, in, kernel_shape, Window{strides, pads});
  }

  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    using Index = typename D::Index;
    const Window window{strides, pads};
    const Index rows = d.Value(kernel_shape[0]), columns = d.Value(kernel_shape[1]);
    const auto over_window = [&](auto&& value) {
      return d.Sum(rows, [&](const Index& r) {
        return d.Sum(columns, [&](const Index& s) {
          const Index h = window.Read(d, 0, at[2], r), w = window.Read(d, 1, at[3], s);
          return d.Select(
              InImage(d, h, in.extent(0, 2), w, in.extent(0, 3)), [&] { return value(h, w); },
              [&] { return d.Lit(0); });
        });
      });
    };
    const auto total = over_window([&](const Index& h, const Index& w) {
      return in(0, {at[0], at[1], h, w});
    });
    if (count_include_pad == 1) return d.Mul(total, d.InverseOf(rows * columns));
    // Without padding every element of the window is in the image.
    bool padded = false;
    for (const Size& p : pads) padded = padded || !p.is_constant(0);
    if (!padded) return d.Mul(total, d.InverseOf(rows * columns));
    const auto count = over_window([&](const Index&, const Index&) { return d.Lit(1); });
    return d.Mul(total, d.Apply(Fn::kRecip, count));
  }
};

struct MaxPool {
  static constexpr Info kInfo{.wire_id = 42,
                              .name = "MaxPool",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kReduction,
                              .onnx = {"MaxPool", 1}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "kernel_shape", &MaxPool::kernel_shape},
                      Field{2, "strides", &MaxPool::strides}, Field{3, "pads", &MaxPool::pads}};
  }
  bool operator==(const MaxPool&) const = default;

  Short<Size> kernel_shape{1, 1};
  Short<Size> strides{1, 1};
  Short<Size> pads{0, 0, 0, 0};

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferPool(d, in, kernel_shape, Window{strides, pads});
  }

  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    using Index = typename D::Index;
    const Window window{strides, pads};
    const auto row = [&](const Short<Index>& k) { return window.Read(d, 0, at[2], k[0]); };
    const auto column = [&](const Short<Index>& k) { return window.Read(d, 1, at[3], k[1]); };
    return d.MaxOver(
        {d.Value(kernel_shape[0]), d.Value(kernel_shape[1])},
        [&](const Short<Index>& k) {
          return InImage(d, row(k), in.extent(0, 2), column(k), in.extent(0, 3));
        },
        [&](const Short<Index>& k) {
          return in(0, {at[0], at[1], row(k), column(k)});
        });
  }
};

}  // namespace tenon::ops
