// Operators that move elements and compute nothing. Axes are counted from the front.
#pragma once

#include "core/ops/info.h"

namespace tenon::ops {

struct Transpose {
  static constexpr Info kInfo{
      .wire_id = 20, .name = "Transpose", .arity_min = 1, .arity_max = 1, .onnx = {"Transpose", 1}};
  static constexpr auto Fields() { return std::tuple{Field{1, "perm", &Transpose::perm}}; }
  bool operator==(const Transpose&) const = default;

  Short<std::int64_t> perm{1, 0};  // Output axis a is input axis perm[a].

  bool IsPermutation() const {
    std::int64_t seen = 0;
    for (std::int64_t p : perm) {
      if (p < 0 || p >= perm.size() || (seen >> p & 1) != 0) return false;
      seen |= std::int64_t{1} << p;
    }
    return true;
  }
  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(in.rank(0) == perm.size() && IsPermutation(),
                  "perm is not a permutation of the axes")) {
      return {};
    }
    Extents<D> out;
    for (int a = 0; a < perm.size(); ++a) out.push_back(in.extent(0, int(perm[a])));
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D&, const In& in, const At<D>& at) const {
    At<D> from = at;
    for (int a = 0; a < perm.size(); ++a) from[int(perm[a])] = at[a];
    return in(0, from);
  }
};

struct Concat {
  static constexpr Info kInfo{.wire_id = 21,
                              .name = "Concat",
                              .arity_min = 1,
                              .arity_max = kArityMax,
                              .onnx = {"Concat", 4}};
  static constexpr auto Fields() { return std::tuple{Field{1, "axis", &Concat::axis}}; }
  bool operator==(const Concat&) const = default;

  std::int64_t axis = 0;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(0 <= axis && axis < in.rank(0), "axis is outside")) return {};
    Extents<D> out = in.extents(0);
    for (int k = 1; k < in.size(); ++k) {
      if (!d.Static(in.rank(k) == in.rank(0), "ranks differ")) return {};
      for (int a = 0; a < in.rank(0); ++a) {
        if (a == axis) {
          out[a] = out[a] + in.extent(k, a);
        } else {
          d.Require(d.Eq(in.extent(0, a), in.extent(k, a)), "extents differ off the axis");
        }
      }
    }
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return Piece(d, in, 0, at);
  }

 private:
  // Reads `at`, counted from the start of operand k.
  template <Domain D, class In>
  typename D::Scalar Piece(D& d, const In& in, int k, const At<D>& at) const {
    if (k + 1 == in.size()) return in(k, at);
    const typename D::Index end = in.extent(k, int(axis));
    return d.Select(
        d.Lt(at[int(axis)], end), [&] { return in(k, at); },
        [&] {
          At<D> rest = at;
          rest[int(axis)] = at[int(axis)] - end;
          return Piece(d, in, k + 1, rest);
        });
  }
};

// Split: the `index`-th of `parts` equal parts along `axis`. ONNX's Split with k outputs is k of
// these; unequal parts are Slices.
struct Split {
  static constexpr Info kInfo{
      .wire_id = 22, .name = "Split", .arity_min = 1, .arity_max = 1, .onnx = {"Split", 2}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "axis", &Split::axis}, Field{2, "parts", &Split::parts},
                      Field{3, "index", &Split::index}};
  }
  bool operator==(const Split&) const = default;

  std::int64_t axis = 0;
  std::int64_t parts = 2;
  std::int64_t index = 0;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(0 <= axis && axis < in.rank(0), "axis is outside")) return {};
    if (!d.Static(1 <= parts && 0 <= index && index < parts, "index is not below parts")) return {};
    Extents<D> out = in.extents(0);
    const typename D::Index whole = out[int(axis)];
    out[int(axis)] = d.FloorDiv(whole, d.Const(parts));
    d.Require(d.Eq(out[int(axis)] * d.Const(parts), whole), "parts do not divide the extent");
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    At<D> from = at;
    const typename D::Index part = d.FloorDiv(in.extent(0, int(axis)), d.Const(parts));
    from[int(axis)] = at[int(axis)] + part * d.Const(index);
    return in(0, from);
  }
};

// Slice: the elements start, start+step, .. below end along `axis`.
struct Slice {
  static constexpr Info kInfo{
      .wire_id = 23, .name = "Slice", .arity_min = 1, .arity_max = 1, .onnx = {"Slice", 10}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "axis", &Slice::axis}, Field{2, "start", &Slice::start},
                      Field{3, "end", &Slice::end}, Field{4, "step", &Slice::step}};
  }
  bool operator==(const Slice&) const = default;

  std::int64_t axis = 0;
  Size start = 0;
  Size end = 1;           // Exclusive.
  std::int64_t step = 1;  // At least 1.

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(0 <= axis && axis < in.rank(0), "axis is outside")) return {};
    if (!d.Static(step >= 1, "step is below 1")) return {};
    const typename D::Index lo = d.Value(start), hi = d.Value(end);
    d.Require(d.Le(d.Const(0), lo), "start is below 0");
    d.Require(d.Lt(lo, hi), "the slice is empty");
    d.Require(d.Le(hi, in.extent(0, int(axis))), "end is beyond the extent");
    Extents<D> out = in.extents(0);
    out[int(axis)] = d.FloorDiv(hi - lo + d.Const(step - 1), d.Const(step));
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    At<D> from = at;
    from[int(axis)] = d.Value(start) + at[int(axis)] * d.Const(step);
    return in(0, from);
  }
};

// Pads with zeros: pads[a] before and pads[rank+a] after axis a, all at least 0.
struct Pad {
  static constexpr Info kInfo{
      .wire_id = 24, .name = "Pad", .arity_min = 1, .arity_max = 1, .onnx = {"Pad", 2}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "begins", &Pad::begins}, Field{2, "ends", &Pad::ends}};
  }
  bool operator==(const Pad&) const = default;

  Short<Size> begins;
  Short<Size> ends;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(begins.size() == in.rank(0) && ends.size() == in.rank(0),
                  "begins and ends need one entry an axis")) {
      return {};
    }
    Extents<D> out;
    for (int a = 0; a < in.rank(0); ++a) {
      d.Require(d.Le(d.Const(0), d.Value(begins[a])), "a pad is below 0");
      d.Require(d.Le(d.Const(0), d.Value(ends[a])), "a pad is below 0");
      out.push_back(in.extent(0, a) + d.Value(begins[a]) + d.Value(ends[a]));
    }
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    return Inside(d, in, 0, at);
  }

 private:
  // Guards only the axes that are padded: a guard that always holds costs the prover a query.
  template <Domain D, class In>
  typename D::Scalar Inside(D& d, const In& in, int a, const At<D>& at) const {
    if (a == in.rank(0)) return in(0, at);
    if (begins[a].is_constant(0) && ends[a].is_constant(0)) return Inside(d, in, a + 1, at);
    At<D> from = at;
    from[a] = at[a] - d.Value(begins[a]);
    return d.Select(
        d.And(d.Le(d.Const(0), from[a]), d.Lt(from[a], in.extent(0, a))),
        [&] { return Inside(d, in, a + 1, from); }, [&] { return d.Lit(0); });
  }
};

// Enlarge: zero-pads a convolution kernel [F, C, h, w] to [F, C, kernel_shape..], centred. What the
// kernel grows by must be even and not negative on both axes.
struct Enlarge {
  static constexpr Info kInfo{
      .wire_id = 25, .name = "Enlarge", .arity_min = 1, .arity_max = 1, .onnx = {}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "kernel_shape", &Enlarge::kernel_shape}};
  }
  bool operator==(const Enlarge&) const = default;

  Short<Size> kernel_shape{Size(3), Size(3)};

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    if (!d.Static(in.rank(0) == 4 && kernel_shape.size() == 2,
                  "Enlarge takes a kernel of rank 4")) {
      return {};
    }
    Extents<D> out = in.extents(0);
    for (int a = 0; a < 2; ++a) {
      const typename D::Index size = d.Value(kernel_shape[a]);
      const typename D::Index growth = size - in.extent(0, 2 + a);
      d.Require(d.Le(d.Const(0), growth), "the kernel is larger already");
      d.Require(d.Eq(d.FloorDiv(growth, d.Const(2)) * d.Const(2), growth),
                "the kernel cannot be centred");
      out[2 + a] = size;
    }
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    At<D> from = at;
    for (int a = 0; a < 2; ++a) {
      from[2 + a] =
          at[2 + a] - d.FloorDiv(d.Value(kernel_shape[a]) - in.extent(0, 2 + a), d.Const(2));
    }
    const auto inside = [&](int a) {
      return d.And(d.Le(d.Const(0), from[a]), d.Lt(from[a], in.extent(0, a)));
    };
    return d.Select(
        d.And(inside(2), inside(3)), [&] { return in(0, from); }, [&] { return d.Lit(0); });
  }
};

// Reshape: the same elements in row-major order under another shape of equally many elements.
struct Reshape {
  static constexpr Info kInfo{
      .wire_id = 26, .name = "Reshape", .arity_min = 1, .arity_max = 1, .onnx = {"Reshape", 5}};
  static constexpr auto Fields() { return std::tuple{Field{1, "shape", &Reshape::shape}}; }
  bool operator==(const Reshape&) const = default;

  Short<Size> shape;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In& in) const {
    Extents<D> out;
    typename D::Index from = d.Const(1), to = d.Const(1);
    for (int a = 0; a < shape.size(); ++a) {
      out.push_back(d.Value(shape[a]));
      d.Require(d.Le(d.Const(1), out[a]), "an extent is below 1");
      to = to * out[a];
    }
    for (int a = 0; a < in.rank(0); ++a) from = from * in.extent(0, a);
    d.Require(d.Eq(from, to), "the number of elements differs");
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In& in, const At<D>& at) const {
    Extents<D> to;
    for (int a = 0; a < shape.size(); ++a) to.push_back(d.Value(shape[a]));
    return d.Reindex(in.extents(0), to, at, [&](const At<D>& from) { return in(0, from); });
  }
};

}  // namespace tenon::ops
