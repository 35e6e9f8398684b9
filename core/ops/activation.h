// Activations that are made of others. ONNX has no operator for them before opset 20; they are here
// because devices have one kernel for them.
#pragma once

#include "core/ops/pointwise.h"

namespace tenon::ops {

// x * sigmoid(x), also known as Swish.
struct Silu {
  static constexpr Info kInfo{.wire_id = 28,
                              .name = "Silu",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Silu&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const auto x = in(0, at);
    return d.Mul(x, d.Apply(Fn::kSigmoid, x));
  }
};

// x times the normal distribution function at x: x/2 * (1 + erf(x * sqrt(1/2))). With `approximate`
// 1: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))). The constants are the nearest doubles.
struct Gelu {
  static constexpr Info kInfo{.wire_id = 27,
                              .name = "Gelu",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {}};
  static constexpr auto Fields() { return std::tuple{Field{1, "approximate", &Gelu::approximate}}; }
  bool operator==(const Gelu&) const = default;

  std::int64_t approximate = 0;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(approximate == 0 || approximate == 1, "approximate is not 0 or 1")) return {};
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const auto x = in(0, at);
    auto inner = x;
    if (approximate == 1) {
      const auto cube = d.Mul(d.Mul(d.Mul(x, x), x), d.Real(0.044715));
      inner = d.Apply(Fn::kTanh, d.Mul(d.Add(x, cube), d.Real(0.7978845608028654)));
    } else {
      inner = d.Apply(Fn::kErf, d.Mul(x, d.Real(0.7071067811865476)));
    }
    return d.Mul(d.Mul(x, d.Real(0.5)), d.Add(inner, d.Lit(1)));
  }
};

}  // namespace tenon::ops
