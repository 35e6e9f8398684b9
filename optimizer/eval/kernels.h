// The engine's kernels, by file. Extents fit; `out` has its extents and the right size already.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/operator.h"
#include "optimizer/eval/engine.h"

namespace tenon::optimizer {

using graph::Extents;

// Row-major strides in elements.
Extents StridesOf(const Extents& extents);

// out[i] = in[base + sum of i[a] * strides[a]] over all positions i of `out`; a stride may be 0.
// (copy.cc)
void CopyStrided(const double* in, const Extents& strides, Values& out);
// Copies `block` (row-major) into `out` at the position `at`. (copy.cc)
void CopyInto(const Values& block, const Extents& at, Values& out);

// c [m, n] += a [m, k] * b [k, n], row-major and contiguous. (gemm.cc)
void Gemm(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b,
          double* c);

// (pointwise.cc)
void Activate(ops::Activation activation, std::vector<double>& x);
// False: there is no kernel for this operator.
bool Unary(const ops::Operator& op, const Values& x, Values& out);
bool Binary(const ops::Operator& op, const Values& a, const Values& b, Values& out);
void BatchNormalize(const ops::BatchNormalization& op, std::span<const Values* const> in,
                    Values& out);
void Clip(double low, double high, const Values& x, Values& out);
// LayerNormalization, or (not centred) RMSNormalization: x, scale [, bias].
void Normalize(std::int64_t axis, double epsilon, bool centred, std::span<const Values* const> in,
               Values& out);

void MatMul(const Values& a, const Values& b, Values& out);                          // gemm.cc
void Convolve(const ops::Conv& op, std::span<const Values* const> in, Values& out);  // window.cc
void AveragePool(const ops::AveragePool& op, const Values& x, Values& out);          // window.cc
void MaxPool(const ops::MaxPool& op, const Values& x, Values& out);                  // window.cc
void ReduceSum(std::int64_t axis, double scale, const Values& x, Values& out);       // reduce.cc
void ReduceMax(std::int64_t axis, const Values& x, Values& out);                     // reduce.cc
void GlobalAveragePool(const Values& x, Values& out);                                // reduce.cc
void Softmax(std::int64_t axis, const Values& x, Values& out);                       // reduce.cc

}  // namespace tenon::optimizer
