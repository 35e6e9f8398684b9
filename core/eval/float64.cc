// The reading as doubles.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/eval/dense.h"
#include "core/eval/eval.h"
#include "core/eval/function.h"

namespace tenon::eval {
namespace {

struct Float64 : ConcreteSizes {
  using Scalar = double;
  double Lit(std::int64_t v) { return double(v); }
  double Real(double v) { return v; }
  double InverseOf(std::int64_t n) { return 1.0 / double(n); }
  double Add(double a, double b) { return a + b; }
  double Sub(double a, double b) { return a - b; }
  double Mul(double a, double b) { return a * b; }
  double Div(double a, double b) { return a / b; }
  double Neg(double a) { return -a; }
  double Apply(ops::Fn f, double x) { return InDoubles(f, x); }
  template <class F>
  double Sum(std::int64_t n, F f) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += f(k);
    return sum;
  }
  template <class A, class V>
  double MaxOver(const ops::Short<std::int64_t>& n, A admits, V value) {
    double best = -std::numeric_limits<double>::infinity();
    ops::Short<std::int64_t> k = ops::Short<std::int64_t>::Filled(n.size(), 0);
    for (;;) {
      if (admits(k)) {
        const double v = value(k);
        best = v > best || std::isnan(v) ? v : best;
      }
      int a = n.size() - 1;
      for (; a >= 0 && ++k[a] == n[a]; --a) k[a] = 0;
      if (a < 0) return best;
    }
  }
  Status status() const { return OkStatus(); }
};
static_assert(ops::Domain<Float64>);

}  // namespace

double InDoubles(ops::Fn f, double x) {
  switch (f) {
    case ops::Fn::kRelu:
      return x > 0 || std::isnan(x) ? x : 0.0;
    case ops::Fn::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ops::Fn::kTanh:
      return std::tanh(x);
    case ops::Fn::kExp:
      return std::exp(x);
    case ops::Fn::kRecip:
      return 1 / x;
    case ops::Fn::kSqrt:
      return std::sqrt(x);
    case ops::Fn::kErf:
      return std::erf(x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

StatusOr<Tensor<double>> Apply(const ops::Operator& op,
                               std::span<const Tensor<double>* const> operands) {
  Float64 d;
  return ApplyDense(d, op, operands);
}

StatusOr<std::vector<Tensor<double>>> Evaluate(const graph::Graph& g,
                                               std::span<const graph::NodeId> roots,
                                               std::span<const Tensor<double>> inputs) {
  return EvaluateDense<double>(
      g, roots, inputs, [](const ops::Operator& op, std::span<const Tensor<double>* const> in) {
        return Apply(op, in);
      });
}

}  // namespace tenon::eval
