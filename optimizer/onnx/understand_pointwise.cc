#include "optimizer/onnx/reader.h"

namespace tenon::optimizer {

Meaning UnderstandPointwise(Reader& r, const ops::Operator& op) {
  std::vector<graph::NodeId> operands;
  for (int k = 0; k < r.input_count(); ++k) operands.push_back(r.in(k));
  return {r.Add(op, operands)};
}

// The sum of any number of operands, from the left.
Meaning UnderstandSum(Reader& r) {
  graph::NodeId sum = r.in(0);
  for (int k = 1; k < r.input_count(); ++k) sum = r.Add(ops::Add{}, {sum, r.in(k)});
  return {sum};
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
