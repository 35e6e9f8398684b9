#include <algorithm>
#include <cmath>
#include <limits>

#include "optimizer/eval/kernels.h"

namespace tenon::optimizer {
namespace {

struct Axis {
  std::int64_t outer = 1, length = 1, inner = 1;
};

Axis Around(const Extents& extents, std::int64_t axis) {
  Axis out;
  for (int a = 0; a < extents.size(); ++a) {
    (a < axis ? out.outer : a == axis ? out.length : out.inner) *= extents[a];
  }
  return out;
}

}  // namespace

void ReduceSum(std::int64_t axis, double scale, const Values& x, Values& out) {
  const Axis s = Around(x.extents, axis);
  const double* from = x.data.data();
  for (std::int64_t o = 0; o < s.outer; ++o) {
    double* to = out.data.data() + o * s.inner;
    for (std::int64_t k = 0; k < s.length; ++k, from += s.inner) {
      for (std::int64_t i = 0; i < s.inner; ++i) to[i] += from[i];
    }
    for (std::int64_t i = 0; i < s.inner; ++i) to[i] *= scale;
  }
}

void ReduceMax(std::int64_t axis, const Values& x, Values& out) {
  const Axis s = Around(x.extents, axis);
  const double* from = x.data.data();
  for (std::int64_t o = 0; o < s.outer; ++o) {
    double* to = out.data.data() + o * s.inner;
    for (std::int64_t i = 0; i < s.inner; ++i) to[i] = -std::numeric_limits<double>::infinity();
    for (std::int64_t k = 0; k < s.length; ++k, from += s.inner) {
      for (std::int64_t i = 0; i < s.inner; ++i) {
        to[i] = from[i] > to[i] || std::isnan(from[i]) ? from[i] : to[i];
      }
    }
  }
}

void GlobalAveragePool(const Values& x, Values& out) {
  const std::size_t length = x.data.size() / out.data.size();
  for (std::size_t c = 0; c < out.data.size(); ++c) {
    double total = 0;
    for (std::size_t k = c * length; k < (c + 1) * length; ++k) total += x.data[k];
    out.data[c] = total / double(length);
  }
}

void Softmax(std::int64_t axis, const Values& x, Values& out) {
  const Axis s = Around(x.extents, axis);
  for (std::int64_t o = 0; o < s.outer; ++o) {
    for (std::int64_t i = 0; i < s.inner; ++i) {
      const std::int64_t base = o * s.length * s.inner + i;
      const double* from = x.data.data() + base;
      double* to = out.data.data() + base;
      double top = from[0], total = 0;
      for (std::int64_t k = 1; k < s.length; ++k) top = std::max(top, from[k * s.inner]);
      for (std::int64_t k = 0; k < s.length; ++k) {
        total += to[k * s.inner] = std::exp(from[k * s.inner] - top);
      }
      for (std::int64_t k = 0; k < s.length; ++k) to[k * s.inner] /= total;
    }
  }
}

}  // namespace tenon::optimizer
