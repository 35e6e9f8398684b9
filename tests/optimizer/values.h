// Comparison of two graphs by evaluation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/eval/eval.h"
#include "core/graph/graph.h"

namespace tenon::optimizer {

inline std::vector<eval::Tensor<double>> RandomInputs(const graph::Graph& g, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<eval::Tensor<double>> out;
  for (std::int32_t k = 0; k < std::int32_t(g.inputs().size()); ++k) {
    eval::Tensor<double> t{graph::Concrete(g.shape(g.input_node(k))), {}};
    t.data.resize(std::size_t(graph::ElementCount(t.extents)));
    for (double& x : t.data) x = double(std::int64_t(random() % 2001) - 1000) / 500;
    out.push_back(std::move(t));
  }
  return out;
}

// The greatest difference of an element, relative to the greatest element of its tensor. Infinity
// when shapes differ. Both graphs have the same inputs.
inline double Difference(const graph::Graph& a, const graph::Graph& b, std::uint64_t seed = 1) {
  const auto inputs = RandomInputs(a, seed);
  const auto x = eval::Evaluate(a, a.outputs(), inputs), y = eval::Evaluate(b, b.outputs(), inputs);
  CHECK(x.ok() && y.ok() && x->size() == y->size());
  double worst = 0;
  for (std::size_t k = 0; k < x->size(); ++k) {
    if (!((*x)[k].extents == (*y)[k].extents)) return INFINITY;
    double scale = 1e-300;
    for (const double v : (*x)[k].data) scale = std::max(scale, std::abs(v));
    for (std::size_t i = 0; i < (*x)[k].data.size(); ++i) {
      worst = std::max(worst, std::abs((*x)[k].data[i] - (*y)[k].data[i]) / scale);
    }
  }
  return worst;
}

}  // namespace tenon::optimizer
