// Matrix product.
#pragma once

#include "core/ops/pointwise.h"

namespace tenon::ops {

// MatMul: out[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]; the leading axes broadcast.
struct MatMul {
  static constexpr Info kInfo{.wire_id = 10,
                              .name = "MatMul",
                              .arity_min = 2,
                              .arity_max = 2,
                              .nature = Nature::kReduction,
                              .onnx = {"MatMul", 1}};
  static constexpr auto Fields() { return std::tuple{}; }
  bool operator==(const MatMul&) const = default;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    const int ra = in.rank(0), rb = in.rank(1);
    if (!d.Static(ra >= 2 && rb >= 2, "MatMul takes matrices (rank 2 or more)")) return {};
    d.Require(d.Eq(in.extent(0, ra - 1), in.extent(1, rb - 2)), "inner extents differ");
    Extents<D> out = BroadcastExtents<D>(d, in.extents(0), in.extents(1), 2);
    out.push_back(in.extent(0, ra - 2));
    out.push_back(in.extent(1, rb - 1));
    return out;
  }

  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    At<D> batch = at;
    batch.erase(at.size() - 1);
    batch.erase(at.size() - 2);
    const At<D> from_a = BroadcastIndex<D>(d, in.extents(0), batch, 2);
    const At<D> from_b = BroadcastIndex<D>(d, in.extents(1), batch, 2);
    return d.Sum(in.extent(0, in.rank(0) - 1), [&](const typename D::Index& k) {
      At<D> a = from_a, b = from_b;
      a.push_back(at[at.size() - 2]);
      a.push_back(k);
      b.push_back(k);
      b.push_back(at[at.size() - 1]);
      return d.Mul(in(0, a), in(1, b));
    });
  }
};

}  // namespace tenon::ops
