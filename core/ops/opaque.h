// A node that is carried and never looked into: what the importer does not understand.
#pragma once

#include "core/ops/info.h"

namespace tenon::ops {

// Opaque: output number `output` of the foreign node `key` (an index into whatever the graph's
// owner keeps). Two opaque nodes are the same value only if key, output and operands agree. Its
// shape is given, not inferred; its type is the graph's.
struct Opaque {
  static constexpr Info kInfo{.wire_id = 60,
                              .name = "Opaque",
                              .arity_max = kArityMax,
                              .nature = Nature::kOpaque,
                              .onnx = {}};
  static constexpr auto Fields() {
    return std::tuple{Field{1, "key", &Opaque::key}, Field{2, "output", &Opaque::output},
                      Field{3, "shape", &Opaque::shape}};
  }
  bool operator==(const Opaque&) const = default;

  std::int64_t key = 0;
  std::int64_t output = 0;
  Short<Size> shape;

  template <Domain D, class In>
  Extents<D> Infer(D& d, const In&) const {
    Extents<D> out;
    for (const Size& s : shape) out.push_back(d.Value(s));
    return out;
  }
  template <Domain D, class In>
  typename D::Scalar Element(D& d, const In&, const At<D>&) const {
    d.Static(false, "an opaque operator has no meaning");
    return d.Lit(0);
  }
};

}  // namespace tenon::ops
