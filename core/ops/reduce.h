// Operators that fold one axis.
#pragma once

#include "core/ops/info.h"

namespace tenon::ops {

// The output extents of a reduction over `axis`, kept with extent 1 or dropped.
template <Domain D, class In>
Extents<D> InferReduced(D& d, const In& in, std::int64_t axis, std::int64_t keepdims) {
  if (!d.Static(0 <= axis && axis < in.rank(0), "axis is outside")) return {};
  if (!d.Static(keepdims == 0 || keepdims == 1, "keepdims is not 0 or 1")) return {};
  Extents<D> out = in.extents(0);
  if (keepdims == 1) {
    out[int(axis)] = d.Const(1);
  } else {
    out.erase(int(axis));
  }
  return out;
}

// The input index that output index `at` and position `k` on the reduced axis stand for.
template <Domain D>
At<D> ReducedIndex(const At<D>& at, std::int64_t axis, std::int64_t keepdims,
                   const typename D::Index& k) {
  At<D> from = at;
  if (keepdims == 1) {
    from[int(axis)] = k;
  } else {
    from.insert(int(axis), k);
  }
  return from;
}

struct ReduceSum {
  static constexpr Info kInfo{.wire_id = 30,
                              .name = "ReduceSum",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kReduction,
                              .onnx = {"ReduceSum", 1}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "axis", &ReduceSum::axis},
                      Field{2, "keepdims", &ReduceSum::keepdims}};
  }
  bool operator==(const ReduceSum&) const = default;

  std::int64_t axis = 0;
  std::int64_t keepdims = 1;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferReduced(d, in, axis, keepdims);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return d.Sum(in.extent(0, int(axis)), [&](const typename D::Index& k) {
      return in(0, ReducedIndex<D>(at, axis, keepdims, k));
    });
  }
};

struct ReduceMean {
  static constexpr Info kInfo{.wire_id = 31,
                              .name = "ReduceMean",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kReduction,
                              .onnx = {"ReduceMean", 1}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "axis", &ReduceMean::axis},
                      Field{2, "keepdims", &ReduceMean::keepdims}};
  }
  bool operator==(const ReduceMean&) const = default;

  std::int64_t axis = 0;
  std::int64_t keepdims = 1;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferReduced(d, in, axis, keepdims);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const typename D::Index n = in.extent(0, int(axis));
    return d.Mul(d.Sum(n,
                       [&](const typename D::Index& k) {
                         return in(0, ReducedIndex<D>(at, axis, keepdims, k));
                       }),
                 d.InverseOf(n));
  }
};

struct ReduceMax {
  static constexpr Info kInfo{.wire_id = 33,
                              .name = "ReduceMax",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kReduction,
                              .onnx = {"ReduceMax", 1}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "axis", &ReduceMax::axis},
                      Field{2, "keepdims", &ReduceMax::keepdims}};
  }
  bool operator==(const ReduceMax&) const = default;

  std::int64_t axis = 0;
  std::int64_t keepdims = 1;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    return InferReduced(d, in, axis, keepdims);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    using Index = typename D::Index;
    return d.MaxOver(
        Short<Index>{in.extent(0, int(axis))},
        [&](const Short<Index>& k) { return d.Le(d.Const(0), k[0]); },
        [&](const Short<Index>& k) { return in(0, ReducedIndex<D>(at, axis, keepdims, k[0])); });
  }
};

// f at every index that agrees with `at` before `axis`, summed.
template <Domain D, class In, class F>
typename D::Scalar SumFrom(D& d, const In& in, int axis, const At<D>& at, const F& f) {
  if (axis == in.rank(0)) return f(at);
  return d.Sum(in.extent(0, axis), [&](const typename D::Index& k) {
    At<D> from = at;
    from[axis] = k;
    return SumFrom(d, in, axis + 1, from, f);
  });
}
// 1 / the number of those indices.
template <Domain D, class In>
typename D::Scalar InverseCountFrom(D& d, const In& in, int axis) {
  typename D::Index count = in.extent(0, axis);
  for (int a = axis + 1; a < in.rank(0); ++a) count = count * in.extent(0, a);
  return d.InverseOf(count);
}

// GlobalAveragePool: the mean of each channel of [N, C, ..], whose other axes stay with extent 1.
struct GlobalAveragePool {
  static constexpr Info kInfo{.wire_id = 34,
                              .name = "GlobalAveragePool",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kReduction,
                              .onnx = {"GlobalAveragePool", 1}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const GlobalAveragePool&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(in.rank(0) >= 3, "the image has no spatial axis")) return {};
    Extents<D> out = in.extents(0);
    for (int a = 2; a < out.size(); ++a) out[a] = d.Const(1);
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const auto total = SumFrom(d, in, 2, at, [&](const At<D>& from) { return in(0, from); });
    return d.Mul(total, InverseCountFrom(d, in, 2));
  }
};

// Softmax along one axis, as in ONNX opset 13: exp(x) / sum of exp(x).
struct Softmax {
  static constexpr Info kInfo{.wire_id = 32,
                              .name = "Softmax",
                              .arity_min = 1,
                              .arity_max = 1,
                              .nature = Nature::kReduction,
                              .onnx = {"Softmax", 13}};
  static constexpr auto Fields() { return std::tuple{Field{1, "axis", &Softmax::axis}}; }
  bool operator==(const Softmax&) const = default;

  std::int64_t axis = 0;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(0 <= axis && axis < in.rank(0), "axis is outside")) return {};
    return in.extents(0);
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    const auto total = d.Sum(in.extent(0, int(axis)), [&](const typename D::Index& k) {
      At<D> from = at;
      from[int(axis)] = k;
      return d.Apply(Fn::kExp, in(0, from));
    });
    return d.Mul(d.Apply(Fn::kExp, in(0, at)), d.Apply(Fn::kRecip, total));
  }
};

}  // namespace tenon::ops
