// Normalization layers.
#pragma once

#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"

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

// The rest of both layer normalizations: operand 0 is x, the others broadcast to its shape.
template <Domain D, class In>
Extents<D> InferNormalized(D& d, const In& in, std::int64_t axis, double epsilon) {
  if (!d.Static(0 <= axis && axis < in.rank(0), "axis is outside")) return {};
  if (!d.Static(epsilon > 0 && epsilon < 1, "epsilon is not between 0 and 1")) return {};
  for (int k = 1; k < in.size(); ++k) {
    const int shift = in.rank(0) - in.rank(k);
    if (!d.Static(shift >= 0, "a parameter has more axes than x")) return {};
    for (int a = 0; a < in.rank(k); ++a) {
      if (d.IsOne(in.extent(k, a))) continue;
      d.Require(d.Eq(in.extent(k, a), in.extent(0, a + shift)), "a parameter does not fit x");
    }
  }
  return in.extents(0);
}

// LayerNormalization over the axes from `axis` on: (x - mean) / sqrt(variance + epsilon) * scale
// + bias, where the variance is the mean of (x - mean)^2. Operands: x, scale [, bias].
struct LayerNormalization {
  static constexpr Info kInfo{.wire_id = 44,
                              .name = "LayerNormalization",
                              .arity_min = 2,
                              .arity_max = 3,
                              .nature = Nature::kReduction,
                              .onnx = {"LayerNormalization", 17}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "axis", &LayerNormalization::axis},
                      Field{2, "epsilon", &LayerNormalization::epsilon}};
  }
  bool operator==(const LayerNormalization&) const = default;

  std::int64_t axis = 1;
  double epsilon = 1e-5;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferNormalized(d, in, axis, epsilon);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const int first = int(axis);
    const auto inverse = InverseCountFrom(d, in, first);
    const auto read = [&](const At<D>& from) { return in(0, from); };
    const auto mean = d.Mul(SumFrom(d, in, first, at, read), inverse);
    const auto square = [&](const At<D>& from) {
      const auto off = d.Sub(in(0, from), mean);
      return d.Mul(off, off);
    };
    const auto variance = d.Mul(SumFrom(d, in, first, at, square), inverse);
    const auto deviation = d.Apply(Fn::kSqrt, d.Add(variance, d.Real(epsilon)));
    const auto normal = d.Div(d.Sub(in(0, at), mean), deviation);
    const auto scaled = d.Mul(normal, ReadBroadcast(d, in, 1, at));
    return in.size() == 2 ? scaled : d.Add(scaled, ReadBroadcast(d, in, 2, at));
  }
};

// RMSNormalization: the same without the mean, x / sqrt(mean of x^2 + epsilon) * scale. ONNX has it
// from opset 23 on only.
struct RMSNormalization {
  static constexpr Info kInfo{.wire_id = 45,
                              .name = "RMSNormalization",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kReduction,
                              .onnx = {}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "axis", &RMSNormalization::axis},
                      Field{2, "epsilon", &RMSNormalization::epsilon}};
  }
  bool operator==(const RMSNormalization&) const = default;

  std::int64_t axis = 1;
  double epsilon = 1e-5;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferNormalized(d, in, axis, epsilon);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const int first = int(axis);
    const auto square = [&](const At<D>& from) { return d.Mul(in(0, from), in(0, from)); };
    const auto mean = d.Mul(SumFrom(d, in, first, at, square), InverseCountFrom(d, in, first));
    const auto size = d.Apply(Fn::kSqrt, d.Add(mean, d.Real(epsilon)));
    return d.Mul(d.Div(in(0, at), size), ReadBroadcast(d, in, 1, at));
  }
};

}  // namespace tenon::ops
