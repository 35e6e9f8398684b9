#include <cmath>
#include <variant>

#include "optimizer/eval/kernels.h"

namespace tenon::optimizer {
namespace {

double Relu(double x) { return x > 0 || std::isnan(x) ? x : 0; }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class F>
void Map(const Values& x, Values& out, F f) {
  for (std::size_t k = 0; k < x.data.size(); ++k) out.data[k] = f(x.data[k]);
}

// Strides that read an operand of these extents at positions of `out`: 0 where it repeats.
Extents BroadcastStrides(const Extents& extents, const Extents& out) {
  const Extents own = StridesOf(extents);
  Extents strides = Extents::Filled(out.size(), 0);
  for (int a = 0; a < extents.size(); ++a) {
    if (extents[a] != 1) strides[out.size() - extents.size() + a] = own[a];
  }
  return strides;
}

// The operand itself, or `space` filled with it repeated.
const double* Broadcast(const Values& x, const Extents& out, Values& space) {
  if (x.extents == out) return x.data.data();
  space.extents = out;
  space.data.resize(std::size_t(graph::ElementCount(out)));
  CopyStrided(x.data.data(), BroadcastStrides(x.extents, out), space);
  return space.data.data();
}

template <class F>
void Zip(const Values& a, const Values& b, Values& out, F f) {
  Values space_a, space_b;
  const double* x = Broadcast(a, out.extents, space_a);
  const double* y = Broadcast(b, out.extents, space_b);
  for (std::size_t k = 0; k < out.data.size(); ++k) out.data[k] = f(x[k], y[k]);
}

}  // namespace

void Activate(ops::Activation activation, std::vector<double>& x) {
  switch (activation) {
    case ops::Activation::kNone:
      return;
    case ops::Activation::kRelu:
      for (double& v : x) v = Relu(v);
      return;
    case ops::Activation::kSigmoid:
      for (double& v : x) v = Sigmoid(v);
      return;
    case ops::Activation::kTanh:
      for (double& v : x) v = std::tanh(v);
      return;
  }
}

bool Unary(const ops::Operator& op, const Values& x, Values& out) {
  if (std::holds_alternative<ops::Neg>(op)) {
    Map(x, out, [](double v) { return -v; });
  } else if (std::holds_alternative<ops::Relu>(op)) {
    Map(x, out, Relu);
  } else if (std::holds_alternative<ops::Sigmoid>(op)) {
    Map(x, out, Sigmoid);
  } else if (std::holds_alternative<ops::Tanh>(op)) {
    Map(x, out, [](double v) { return std::tanh(v); });
  } else if (std::holds_alternative<ops::Exp>(op)) {
    Map(x, out, [](double v) { return std::exp(v); });
  } else if (std::holds_alternative<ops::Reciprocal>(op)) {
    Map(x, out, [](double v) { return 1 / v; });
  } else {
    return false;
  }
  return true;
}

bool Binary(const ops::Operator& op, const Values& a, const Values& b, Values& out) {
  if (std::holds_alternative<ops::Add>(op)) {
    Zip(a, b, out, [](double x, double y) { return x + y; });
  } else if (std::holds_alternative<ops::Sub>(op)) {
    Zip(a, b, out, [](double x, double y) { return x - y; });
  } else if (std::holds_alternative<ops::Mul>(op)) {
    Zip(a, b, out, [](double x, double y) { return x * y; });
  } else {
    return false;
  }
  return true;
}

void BatchNormalize(const ops::BatchNormalization& op, std::span<const Values* const> in,
                    Values& out) {
  const Values& x = *in[0];
  const std::int64_t channels = x.extents[1];
  const std::int64_t inner = graph::ElementCount(x.extents) / (x.extents[0] * channels);
  for (std::int64_t block = 0; block < x.extents[0] * channels; ++block) {
    const auto c = std::size_t(block % channels);
    const double scale = in[1]->data[c] / std::sqrt(in[4]->data[c] + op.epsilon);
    const double mean = in[3]->data[c], bias = in[2]->data[c];
    for (std::int64_t k = block * inner; k < (block + 1) * inner; ++k) {
      out.data[std::size_t(k)] = (x.data[std::size_t(k)] - mean) * scale + bias;
    }
  }
}

}  // namespace tenon::optimizer
