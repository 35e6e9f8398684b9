#include <cmath>
#include <limits>

#include "optimizer/onnx/reader.h"

namespace tenon::optimizer {

Meaning UnderstandPointwise(Reader& r, const ops::Operator& op) {
  std::vector<graph::NodeId> operands;
  for (int k = 0; k < r.input_count(); ++k) operands.push_back(r.in(k));
  return {r.Add(op, operands)};
}

Meaning UnderstandFold(Reader& r, const ops::Operator& op) {
  graph::NodeId all = r.in(0);
  for (int k = 1; k < r.input_count(); ++k) all = r.Add(op, {all, r.in(k)});
  return {all};
}

Meaning UnderstandLeakyRelu(Reader& r) {
  const double alpha = r.Float("alpha", double(0.01f));
  if (!std::isfinite(alpha)) return {r.Refuse("alpha is not finite")};
  return {r.Add(ops::LeakyRelu{.alpha = alpha}, {r.in(0)})};
}

// Until opset 11 the bounds are attributes, and those that are left out are the greatest floats.
Meaning UnderstandClip(Reader& r) {
  graph::NodeId low = r.in(1), high = r.in(2);
  if (r.opset() < 11) {
    constexpr double kMost = std::numeric_limits<float>::max();
    low = r.Scalar(r.Float("min", -kMost));
    high = r.Scalar(r.Float("max", kMost));
    return {r.Add(ops::Clip{}, {r.in(0), low, high})};
  }
  // A bound without axes is a scalar; the specification knows no others.
  for (int k : {1, 2}) {
    if (r.HasInput(k) && r.rank(k) != 0) return {r.Refuse("a bound is no scalar")};
  }
  if (r.HasInput(1) && r.HasInput(2)) return {r.Add(ops::Clip{}, {r.in(0), low, high})};
  if (r.HasInput(1)) return {r.Add(ops::Max{}, {r.in(0), low})};
  if (r.HasInput(2)) return {r.Add(ops::Min{}, {r.in(0), high})};
  return {r.in(0)};
}

// Squares and cubes: what normalizations and activations are exported with.
Meaning UnderstandPow(Reader& r) {
  const auto exponent = r.ConstantScalar(1);
  if (!exponent || (*exponent != 2 && *exponent != 3))
    return {r.Refuse("the exponent is not 2 or 3")};
  if (r.rank(1) > r.rank(0)) return {r.Refuse("the exponent has more axes than the base")};
  const graph::NodeId square = r.Add(ops::Mul{}, {r.in(0), r.in(0)});
  return {*exponent == 2 ? square : r.Add(ops::Mul{}, {square, r.in(0)})};
}

// Its other outputs are the mean and the reciprocal of the deviation.
Meaning UnderstandLayerNormalization(Reader& r) {
  const auto axis = Reader::Axis(r.Int("axis", -1), r.rank(0));
  if (!axis) return {r.Refuse("axis is outside")};
  const double epsilon = r.Float("epsilon", double(1e-5f));
  std::vector<graph::NodeId> operands{r.in(0), r.in(1)};
  if (r.HasInput(2)) operands.push_back(r.in(2));
  Meaning out{r.Add(ops::LayerNormalization{.axis = *axis, .epsilon = epsilon}, operands)};
  if (!r.HasOutput(1) && !r.HasOutput(2)) return out;
  const auto mean_of = [&](graph::NodeId of) {
    for (std::int64_t a = *axis; a < r.rank(0); ++a) of = r.Add(ops::ReduceMean{.axis = a}, {of});
    return of;
  };
  const graph::NodeId mean = mean_of(r.in(0)), off = r.Add(ops::Sub{}, {r.in(0), mean});
  const graph::NodeId variance = mean_of(r.Add(ops::Mul{}, {off, off}));
  const graph::NodeId safe = r.Add(ops::Add{}, {variance, r.Scalar(epsilon)});
  out.push_back(mean);
  out.push_back(r.Add(ops::Reciprocal{}, {r.Add(ops::Sqrt{}, {safe})}));
  return out;
}

Meaning UnderstandBatchNormalization(Reader& r) {
  if (r.opset() < 9 && r.Int("spatial", 1) != 1) return {r.Refuse("spatial is 0")};
  // Until opset 14 a node that computes new running statistics is in training mode.
  if (r.Int("training_mode", 0) != 0) return {r.Refuse("training_mode is set")};
  for (int k = 1; k < r.output_count(); ++k) {
    if (r.HasOutput(k)) return {r.Refuse("it computes new running statistics")};
  }
  if (r.input_count() != 5) return {r.Refuse("inputs are missing")};
  return {r.Add(ops::BatchNormalization{.epsilon = r.Float("epsilon", double(1e-5f))},
                {r.in(0), r.in(1), r.in(2), r.in(3), r.in(4)})};
}

}  // namespace tenon::optimizer
