#include <Eigen/Core>

#include "optimizer/eval/kernels.h"

namespace tenon::optimizer {

void Gemm(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b,
          double* c) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> left(a, m, k), right(b, k, n);
  Eigen::Map<Matrix>(c, m, n).noalias() += left * right;
}

// The leading axes broadcast: each pair of matrices is one product.
void MatMul(const Values& a, const Values& b, Values& out) {
  const int ra = a.extents.size(), rb = b.extents.size(), r = out.extents.size();
  const std::int64_t m = out.extents[r - 2], n = out.extents[r - 1], k = a.extents[ra - 1];
  // A shared right matrix: all left rows are one tall matrix.
  if (rb == 2 && ra == r) {
    const std::int64_t rows = k == 0 ? 0 : std::int64_t(a.data.size()) / k;
    Gemm(rows, n, k, a.data.data(), b.data.data(), out.data.data());
    return;
  }
  const Extents sa = StridesOf(a.extents), sb = StridesOf(b.extents);
  const std::int64_t batches = m * n == 0 ? 0 : std::int64_t(out.data.size()) / (m * n);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const double* from_a = a.data.data();
    const double* from_b = b.data.data();
    std::int64_t rest = batch;
    for (int axis = r - 3; axis >= 0; --axis) {
      const std::int64_t i = rest % out.extents[axis];
      rest /= out.extents[axis];
      const int in_a = axis - (r - ra), in_b = axis - (r - rb);
      if (in_a >= 0 && a.extents[in_a] != 1) from_a += i * sa[in_a];
      if (in_b >= 0 && b.extents[in_b] != 1) from_b += i * sb[in_b];
    }
    Gemm(m, n, k, from_a, from_b, out.data.data() + batch * m * n);
  }
}

}  // namespace tenon::optimizer
