#include "optimizer/onnx/reader.h"

namespace tenon::optimizer {

Meaning UnderstandMatMul(Reader& r) {
  return {r.Add(ops::MatMul{}, {r.in(0), r.in(1)})};  // Vectors are refused there.
}

// alpha * op(a) op(b) + beta * c, where op transposes on demand.
Meaning UnderstandGemm(Reader& r) {
  const auto side = [&](int k, const char* attr) {
    return r.Int(attr, 0) == 0 ? r.in(k) : r.Add(ops::Transpose{.perm = {1, 0}}, {r.in(k)});
  };
  const auto scaled = [&](graph::NodeId x, const char* attr) {
    const double by = r.Float(attr, 1);
    return by == 1 ? x : r.Add(ops::Mul{}, {x, r.Scalar(by)});
  };
  if (r.rank(0) != 2 || r.rank(1) != 2) return {r.Refuse("Gemm takes matrices")};
  // Runtimes do not read c then, and 0 times infinity is no number.
  if (r.HasInput(2) && r.Float("beta", 1) == 0) return {r.Refuse("beta is 0")};
  graph::NodeId out = scaled(r.Add(ops::MatMul{}, {side(0, "transA"), side(1, "transB")}), "alpha");
  if (r.HasInput(2)) out = r.Add(ops::Add{}, {out, scaled(r.in(2), "beta")});
  return {out};
}

}  // namespace tenon::optimizer
