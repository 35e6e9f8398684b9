#include <cmath>
#include <variant>

#include "optimizer/eval/kernels.h"

namespace tenon::optimizer {
namespace {

double Relu(double x) { return x > 0 || std::isnan(x) ? x : 0; }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// A NaN on either side is the result.
double Greater(double x, double y) { return x > y || std::isnan(x) ? x : y; }
double Lesser(double x, double y) { return x < y || std::isnan(x) ? x : y; }
double Gelu(double x) { return x / 2 * (1 + std::erf(x * 0.7071067811865476)); }
double GeluByTanh(double x) {
  return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

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
  } else if (std::holds_alternative<ops::Sqrt>(op)) {
    Map(x, out, [](double v) { return std::sqrt(v); });
  } else if (std::holds_alternative<ops::Erf>(op)) {
    Map(x, out, [](double v) { return std::erf(v); });
  } else if (const auto* leaky = std::get_if<ops::LeakyRelu>(&op)) {
    Map(x, out, [alpha = leaky->alpha](double v) { return v < 0 ? alpha * v : v; });
  } else if (std::holds_alternative<ops::Silu>(op)) {
    Map(x, out, [](double v) { return v * Sigmoid(v); });
  } else if (const auto* gelu = std::get_if<ops::Gelu>(&op)) {
    Map(x, out, gelu->approximate == 1 ? GeluByTanh : Gelu);
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
  } else if (std::holds_alternative<ops::Div>(op)) {
    Zip(a, b, out, [](double x, double y) { return x / y; });
  } else if (std::holds_alternative<ops::Max>(op)) {
    Zip(a, b, out, Greater);
  } else if (std::holds_alternative<ops::Min>(op)) {
    Zip(a, b, out, Lesser);
  } else {
    return false;
  }
  return true;
}

void Clip(double low, double high, const Values& x, Values& out) {
  Map(x, out, [=](double v) { return Lesser(Greater(v, low), high); });
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

void Normalize(std::int64_t axis, double epsilon, bool centred, std::span<const Values* const> in,
               Values& out) {
  const Values& x = *in[0];
  std::int64_t length = 1;
  for (int a = int(axis); a < x.extents.size(); ++a) length *= x.extents[a];
  const auto count = std::int64_t(x.data.size());
  for (std::int64_t first = 0; first < count; first += length) {
    const std::span<const double> row(x.data.data() + first, std::size_t(length));
    double mean = 0, square = 0;
    if (centred) {
      for (double v : row) mean += v;
      mean /= double(length);
    }
    for (double v : row) square += (v - mean) * (v - mean);
    const double deviation = std::sqrt(square / double(length) + epsilon);
    for (std::size_t k = 0; k < row.size(); ++k) {
      out.data[std::size_t(first) + k] = (row[k] - mean) / deviation;
    }
  }
  Values space;
  const double* scale = Broadcast(*in[1], x.extents, space);
  for (std::size_t k = 0; k < out.data.size(); ++k) out.data[k] *= scale[k];
  if (in.size() == 2) return;
  const double* bias = Broadcast(*in[2], x.extents, space);
  for (std::size_t k = 0; k < out.data.size(); ++k) out.data[k] += bias[k];
}

}  // namespace tenon::optimizer
