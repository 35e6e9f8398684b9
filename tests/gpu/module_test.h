// What both modules must fulfil, the one for CUDA and its twin on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "optimizer/device/cuda/meter.h"
#include "tests/optimizer/operation_values.h"
#include "tests/support/random_operator.h"

namespace tenon::optimizer {

// Of 40 samples of each operator, those without a plan: constants, what is free, normalizations
// whose parameters broadcast, and products that repeat matrices in a pattern.
inline const std::map<std::string_view, int> kMayMiss = {
    {"Reshape", 40},          {"Fill", 40},       {"Eye", 40},
    {"ConvIdentity", 40},     {"PoolKernel", 40}, {"LayerNormalization", 21},
    {"RMSNormalization", 23}, {"MatMul", 4},
};

// Runs the operation once. False: there is no kernel.
inline bool ExpectMeaningOn(cuda::Module& module, const Operation& operation, std::uint64_t seed) {
  const auto kernel = module.Prepare(operation);
  if (kernel == nullptr) return false;
  const std::vector<Values> values = RandomOperands(operation, seed);
  for (int k = 0; k < int(values.size()); ++k) {
    EXPECT_TRUE(kernel->SetOperand(k, Floats(values[std::size_t(k)])));
  }
  EXPECT_TRUE(std::isfinite(kernel->Time(1, false))) << TextOf(operation);
  std::vector<float> actual(std::size_t(graph::ElementCount(operation.output)));
  EXPECT_TRUE(kernel->GetOutput(actual));
  ExpectMeaning(operation, values, actual);
  return true;
}

inline void ExpectEveryOperator(cuda::Module& module) {
  std::uint64_t seed = 1;
  for (const ops::Operator& listed : ops::AllOperators()) {
    if (ops::IsOpaque(listed)) continue;
    int missing = 0;
    std::string first;
    for (const test::Sample& s : test::Samples(listed, 40)) {
      const Operation operation = MakeOperation(s.op, s.operands, s.output);
      if (ExpectMeaningOn(module, operation, seed += 10)) continue;
      ++missing;
      if (first.empty()) first = TextOf(operation);
    }
    const auto may = kMayMiss.find(ops::NameOf(listed));
    EXPECT_LE(missing, may == kMayMiss.end() ? 0 : may->second)
        << ops::NameOf(listed) << ": " << first;
  }
}

inline void ExpectConvolutionsOfNetworks(cuda::Module& module) {
  for (const std::int64_t group : {1, 4, 32}) {
    for (const int form : {0, 1, 2, 3}) {
      ops::Conv conv{.strides = {2, 1}, .pads = {1, 0, 0, 1}, .dilations = {1, 2}, .group = group};
      conv.residual = form >= 2 ? 1 : 0;
      conv.activation = ops::Activation(form);
      std::vector<graph::Extents> operands{{2, 64, 14, 14}, {96, 64 / group, 3, 3}};
      if (form % 2 == 1) operands.push_back({96});
      const graph::Extents out{2, 96, 7, 11};
      if (conv.residual == 1) operands.push_back(out);
      EXPECT_TRUE(ExpectMeaningOn(module, MakeOperation(conv, operands, out), 7))
          << "group " << group << " form " << form;
    }
  }
}

}  // namespace tenon::optimizer
