// Constant tensors: operators without operands. They depend on nothing, so they cost nothing at run
// time.
#pragma once

#include "core/ops/info.h"

namespace tenon::ops {

// The extents `shape`, each required to be at least 1.
template <Domain D>
Extents<D> ShapeOf(D& d, const Short<Size>& shape) {
  Extents<D> out;
  for (const Size& s : shape) {
    out.push_back(d.Value(s));
    d.Require(d.Le(d.Const(1), out[out.size() - 1]), "an extent is below 1");
  }
  return out;
}

// Every element is `value`, a finite double.
struct Fill {
  static constexpr Info kInfo{
      .wire_id = 50, .name = "Fill", .nature = Nature::kConstant, .onnx = {}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "shape", &Fill::shape}, Field{2, "value", &Fill::value}};
  }
  bool operator==(const Fill&) const = default;

  Short<Size> shape;
  double value = 1;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In&) const {
    return ShapeOf(d, shape);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In&, const At<D>&) const {
    return d.Real(value);
  }
};

// The identity matrix [size, size].
struct Eye {
  static constexpr Info kInfo{
      .wire_id = 51, .name = "Eye", .nature = Nature::kConstant, .onnx = {}};
  static constexpr auto Fields() { return std::tuple{Field{1, "size", &Eye::size}}; }
  bool operator==(const Eye&) const = default;

  Size size = 1;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In&) const {
    return ShapeOf(d, {size, size});
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In&, const At<D>& at) const {
    return d.Select(
        d.Eq(at[0], at[1]), [&] { return d.Lit(1); }, [&] { return d.Lit(0); });
  }
};

// The kernel [channels, channels, kernel_shape..] with which a centred convolution changes nothing.
// Both kernel extents are odd.
struct ConvIdentity {
  static constexpr Info kInfo{
      .wire_id = 52, .name = "ConvIdentity", .nature = Nature::kConstant, .onnx = {}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "channels", &ConvIdentity::channels},
                      Field{2, "kernel_shape", &ConvIdentity::kernel_shape}};
  }
  bool operator==(const ConvIdentity&) const = default;

  Size channels = 1;
  Short<Size> kernel_shape{1, 1};

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In&) const {
    if (!d.Static(kernel_shape.size() == 2, "kernel_shape needs 2 entries")) return {};
    for (const Size& k : kernel_shape) {
      const auto half = d.FloorDiv(d.Value(k), d.Const(2));
      d.Require(d.Eq(half + half + d.Const(1), d.Value(k)), "a kernel extent is even");
    }
    return ShapeOf(d, {channels, channels, kernel_shape[0], kernel_shape[1]});
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In&, const At<D>& at) const {
    const auto centre = [&](int a) {
      return d.Eq(at[2 + a], d.FloorDiv(d.Value(kernel_shape[a]), d.Const(2)));
    };
    return d.Select(
        d.And(d.Eq(at[0], at[1]), d.And(centre(0), centre(1))), [&] { return d.Lit(1); },
        [&] { return d.Lit(0); });
  }
};

// The kernel [channels, channels, kernel_shape..] that averages each channel over the window, with
// the padding counted.
struct PoolKernel {
  static constexpr Info kInfo{
      .wire_id = 53, .name = "PoolKernel", .nature = Nature::kConstant, .onnx = {}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "channels", &PoolKernel::channels},
                      Field{2, "kernel_shape", &PoolKernel::kernel_shape}};
  }
  bool operator==(const PoolKernel&) const = default;

  Size channels = 1;
  Short<Size> kernel_shape{1, 1};

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In&) const {
    if (!d.Static(kernel_shape.size() == 2, "kernel_shape needs 2 entries")) return {};
    return ShapeOf(d, {channels, channels, kernel_shape[0], kernel_shape[1]});
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In&, const At<D>& at) const {
    return d.Select(
        d.Eq(at[0], at[1]),
        [&] { return d.InverseOf(d.Value(kernel_shape[0]) * d.Value(kernel_shape[1])); },
        [&] { return d.Lit(0); });
  }
};

}  // namespace tenon::ops
