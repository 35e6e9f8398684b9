// Quotients, roots, the error function, maxima and what is made of them, element by element.
#pragma once

#include "core/ops/pointwise.h"

namespace tenon::ops {

// The greater of a and b, as the maximum over {0, 1}: a domain needs no maximum of two of its own.
template <Domain D>
typename D::Scalar Greater(D& d, const typename D::Scalar& a, const typename D::Scalar& b) {
  using Index = typename D::Index;
  return d.MaxOver(
      Short<Index>{d.Const(2)}, [&](const Short<Index>& k) { return d.Le(d.Const(0), k[0]); },
      [&](const Short<Index>& k) {
        return d.Select(
            d.Lt(k[0], d.Const(1)), [&] { return a; }, [&] { return b; });
      });
}
// The smaller one.
template <Domain D>
typename D::Scalar Lesser(D& d, const typename D::Scalar& a, const typename D::Scalar& b) {
  return d.Neg(Greater(d, d.Neg(a), d.Neg(b)));
}

// A quotient: proofs take it for 0 where the divisor is 0.
struct Div {
  static constexpr Info kInfo{.wire_id = 12,
                              .name = "Div",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kPointwise,
                              .onnx = {"Div", 7}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Div&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferBinary(d, in);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Div(ReadBroadcast(d, in, 0, at), ReadBroadcast(d, in, 1, at));
  }
};

struct Sqrt {
  static constexpr Info kInfo{.wire_id = 13,
                              .name = "Sqrt",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Sqrt", 6}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Sqrt&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Apply(Fn::kSqrt, in(0, at));
  }
};

// The error function.
struct Erf {
  static constexpr Info kInfo{.wire_id = 14,
                              .name = "Erf",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Erf", 9}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Erf&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Apply(Fn::kErf, in(0, at));
  }
};

// The greater of two; ONNX's takes any number of operands.
struct Max {
  static constexpr Info kInfo{.wire_id = 15,
                              .name = "Max",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kPointwise,
                              .commutative = true,
                              .onnx = {"Max", 8}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Max&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferBinary(d, in);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return Greater(d, ReadBroadcast(d, in, 0, at), ReadBroadcast(d, in, 1, at));
  }
};

// The smaller of two; ONNX's takes any number of operands.
struct Min {
  static constexpr Info kInfo{.wire_id = 16,
                              .name = "Min",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kPointwise,
                              .commutative = true,
                              .onnx = {"Min", 8}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Min&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferBinary(d, in);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return Lesser(d, ReadBroadcast(d, in, 0, at), ReadBroadcast(d, in, 1, at));
  }
};

// x between two scalars: min(max(x, low), high), which is `high` where low > high. A bound that is
// left out in ONNX makes it a Max or a Min.
struct Clip {
  static constexpr Info kInfo{.wire_id = 17,
                              .name = "Clip",
                              .arity_min = 3,
                              .arity_max = 3,
                              .nature = Nature::kPointwise,
                              .onnx = {"Clip", 11}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Clip&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(in.rank(1) == 0 && in.rank(2) == 0, "the bounds are scalars")) return {};
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return Lesser(d, Greater(d, in(0, at), in(1, {})), in(2, {}));
  }
};

// x where it is positive, else alpha * x: Relu(x) - alpha Relu(-x).
struct LeakyRelu {
  static constexpr Info kInfo{.wire_id = 18,
                              .name = "LeakyRelu",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"LeakyRelu", 6}};
  static constexpr auto Fields() { return std::tuple{Field{1, "alpha", &LeakyRelu::alpha}}; }
  bool operator==(const LeakyRelu&) const = default;

  double alpha = 0.01;  // Finite.

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const auto x = in(0, at);
    const auto below = d.Mul(d.Real(alpha), d.Apply(Fn::kRelu, d.Neg(x)));
    return d.Sub(d.Apply(Fn::kRelu, x), below);
  }
};

}  // namespace tenon::ops
