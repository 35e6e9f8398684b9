// Normalization layers.
#pragma once

#include "core/ops/info.h"

namespace tenon::ops {

// BatchNormalization as used at inference: (x - mean) / sqrt(variance + epsilon) * scale + bias,
// for x [N, C, ..] and the other four operands scale, bias, mean, variance [C].
struct BatchNormalization {
  static constexpr Info kInfo{.wire_id = 43,
                              .name = "BatchNormalization",
                              .arity_min = 5,
                              .arity_max = 5,
                              .nature = Nature::kPointwise,
                              .onnx = {"BatchNormalization", 7}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "epsilon", &BatchNormalization::epsilon}};
  }
  bool operator==(const BatchNormalization&) const = default;

  double epsilon = 1e-5;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(in.rank(0) >= 2, "x has rank 2 or more")) return {};
    if (!d.Static(epsilon > 0 && epsilon < 1, "epsilon is not between 0 and 1")) return {};
    for (int k = 1; k < 5; ++k) {
      if (!d.Static(in.rank(k) == 1, "scale, bias, mean and variance have rank 1")) return {};
      d.Require(d.Eq(in.extent(k, 0), in.extent(0, 1)), "a parameter differs from the channels");
    }
    return in.extents(0);
  }

  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const At<D> channel{at[1]};
    const auto deviation =
        d.Apply(Fn::kRecip, d.Apply(Fn::kSqrt, d.Add(in(4, channel), d.Real(epsilon))));
    return d.Add(d.Mul(d.Mul(d.Sub(in(0, at), in(3, channel)), deviation), in(1, channel)),
                 in(2, channel));
  }
};

}  // namespace tenon::ops
