// Operators whose output element depends on one element of each operand, with numpy broadcasting:
// shapes are aligned from the right, and an axis whose extent is written as 1 repeats. A rank-0
// operand is a scalar, so scalar multiplication is Mul with one.
#pragma once

#include "core/ops/info.h"

namespace tenon::ops {

// The extents of two broadcast shapes. `skip` axes at the end of both are left alone (and absent
// from the result), which is what batched MatMul needs.
template <Domain D>
Extents<D> BroadcastExtents(D& d, const Extents<D>& a, const Extents<D>& b, int skip = 0) {
  const int ra = a.size() - skip, rb = b.size() - skip;
  const int rank = ra > rb ? ra : rb;
  Extents<D> out;
  for (int k = 0; k < rank; ++k) {
    const int ka = k - (rank - ra), kb = k - (rank - rb);
    if (ka < 0) {
      out.push_back(b[kb]);
    } else if (kb < 0) {
      out.push_back(a[ka]);
    } else if (d.IsOne(a[ka])) {
      out.push_back(b[kb]);
    } else {
      if (!d.IsOne(b[kb])) d.Require(d.Eq(a[ka], b[kb]), "extents differ and neither is 1");
      out.push_back(a[ka]);
    }
  }
  return out;
}

// The index into an operand of extents `own` (its last `skip` axes excluded) that output index `at`
// reads.
template <Domain D>
At<D> BroadcastIndex(D& d, const Extents<D>& own, const At<D>& at, int skip = 0) {
  At<D> from;
  const int rank = own.size() - skip;
  for (int k = 0; k < rank; ++k) {
    from.push_back(d.IsOne(own[k]) ? d.Const(0) : at[at.size() - rank + k]);
  }
  return from;
}

// Shape and operand access shared by the binary pointwise operators.
template <Domain D, class In>
Extents<D> InferBinary(D& d, const In& in) {
  return BroadcastExtents<D>(d, in.extents(0), in.extents(1));
}
template <Domain D, class In>
typename D::Scalar ReadBroadcast(D& d, const In& in, int k, const At<D>& at) {
  return in(k, BroadcastIndex<D>(d, in.extents(k), at));
}

struct Add {
  static constexpr Info kInfo{.wire_id = 1,
                              .name = "Add",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kPointwise,
                              .commutative = true,
                              .onnx = {"Add", 7}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Add&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferBinary(d, in);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Add(ReadBroadcast(d, in, 0, at), ReadBroadcast(d, in, 1, at));
  }
};

struct Sub {
  static constexpr Info kInfo{.wire_id = 2,
                              .name = "Sub",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kPointwise,
                              .onnx = {"Sub", 7}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Sub&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferBinary(d, in);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Sub(ReadBroadcast(d, in, 0, at), ReadBroadcast(d, in, 1, at));
  }
};

struct Mul {
  static constexpr Info kInfo{.wire_id = 3,
                              .name = "Mul",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kPointwise,
                              .commutative = true,
                              .onnx = {"Mul", 7}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Mul&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferBinary(d, in);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Mul(ReadBroadcast(d, in, 0, at), ReadBroadcast(d, in, 1, at));
  }
};

struct Neg {
  static constexpr Info kInfo{.wire_id = 4,
                              .name = "Neg",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Neg", 6}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Neg&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Neg(in(0, at));
  }
};

struct Relu {
  static constexpr Info kInfo{.wire_id = 5,
                              .name = "Relu",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Relu", 6}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Relu&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Apply(Fn::kRelu, in(0, at));
  }
};

struct Sigmoid {
  static constexpr Info kInfo{.wire_id = 6,
                              .name = "Sigmoid",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Sigmoid", 6}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Sigmoid&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Apply(Fn::kSigmoid, in(0, at));
  }
};

struct Tanh {
  static constexpr Info kInfo{.wire_id = 7,
                              .name = "Tanh",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Tanh", 6}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Tanh&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Apply(Fn::kTanh, in(0, at));
  }
};

struct Exp {
  static constexpr Info kInfo{.wire_id = 8,
                              .name = "Exp",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Exp", 6}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Exp&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Apply(Fn::kExp, in(0, at));
  }
};

struct Reciprocal {
  static constexpr Info kInfo{.wire_id = 9,
                              .name = "Reciprocal",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kPointwise,
                              .onnx = {"Reciprocal", 6}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const Reciprocal&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D&, const In& in) const {
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Apply(Fn::kRecip, in(0, at));
  }
};

}  // namespace tenon::ops
