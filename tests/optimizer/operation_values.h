// Operations on random operands, for tests of the kernels of devices.
#pragma once

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "optimizer/device/operation.h"
#include "optimizer/eval/compare.h"
#include "optimizer/eval/engine.h"

namespace tenon::optimizer {

// `weights`: all operands but the first are known before run time.
inline Operation MakeOperation(const ops::Operator& op, const std::vector<graph::Extents>& operands,
                               const graph::Extents& output, bool weights = false) {
  Operation out{op, {}, output};
  for (const graph::Extents& e : operands) {
    out.operands.push_back({e, weights && !out.operands.empty(), -1});
  }
  return out;
}

// Random operands that the operator is defined on, rounded to float, since that is what kernels
// compute with.
inline std::vector<Values> RandomOperands(const Operation& operation, std::uint64_t seed) {
  std::vector<Values> values;
  for (const Operand& o : operation.operands) {
    values.push_back({o.extents, RandomNumbers(++seed, graph::ElementCount(o.extents))});
    for (double& x : values.back().data) x = double(float(x));
    if (o.same_as >= 0) values.back() = values[std::size_t(o.same_as)];
  }
  const bool variance = std::holds_alternative<ops::BatchNormalization>(operation.op);
  if (variance || std::holds_alternative<ops::Sqrt>(operation.op)) {
    for (double& v : values.back().data) v = std::fabs(v);
  }
  return values;
}

inline std::vector<float> Floats(const Values& values) {
  return {values.data.begin(), values.data.end()};
}

// That `actual` is what the operator means.
inline void ExpectMeaning(const Operation& operation, const std::vector<Values>& values,
                          const std::vector<float>& actual) {
  std::vector<const Values*> operands;
  for (const Values& v : values) operands.push_back(&v);
  const auto expected = Apply(operation.op, operands, operation.output);
  ASSERT_TRUE(expected.ok()) << TextOf(operation);
  ASSERT_EQ(expected->data.size(), actual.size()) << TextOf(operation);
  const Values got{expected->extents, std::vector<double>(actual.begin(), actual.end())};
  // Sums of many products, and libraries' approximations of functions.
  EXPECT_LT(RelativeError(*expected, got), 5e-5) << TextOf(operation);
}

}  // namespace tenon::optimizer
