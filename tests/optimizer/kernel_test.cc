// The CPU's kernels against the fast engine: a cost is worth something only if what was timed
// computes what the operator means.
#include "optimizer/device/cpu/kernel.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tests/optimizer/operation_values.h"
#include "tests/support/random_operator.h"

namespace tenon::optimizer {
namespace {

class KernelTest : public ::testing::Test {
 protected:
  KernelTest() { cpu::SetThreads(1); }

  // Runs the kernel once on random numbers. False: there is none.
  bool ExpectSame(const Operation& operation, std::uint64_t seed) const {
    const std::unique_ptr<cpu::Kernel> kernel = cpu::MakeKernel(library_, operation);
    if (kernel == nullptr) return false;
    const std::vector<Values> values = RandomOperands(operation, seed);
    for (int k = 0; k < int(values.size()); ++k) {
      kernel->SetOperand(k, Floats(values[std::size_t(k)]));
    }
    kernel->Run();
    ExpectMeaning(operation, values, kernel->Output());
    return true;
  }

  const cpu::Library library_;
};

// Of 40 samples, those that have no kernel: constants, what is free, and normalizations whose
// parameters broadcast. Everything else must be there, or it would silently be estimated.
const std::map<std::string_view, int> kMayMiss = {
    {"Reshape", 40},          {"Fill", 40},       {"Eye", 40},
    {"ConvIdentity", 40},     {"PoolKernel", 40}, {"LayerNormalization", 21},
    {"RMSNormalization", 23},
};

TEST_F(KernelTest, EveryOperatorIsMeasuredAndComputesWhatItMeans) {
  std::uint64_t seed = 1;
  for (const ops::Operator& listed : ops::AllOperators()) {
    if (ops::IsOpaque(listed)) continue;
    int missing = 0;
    std::string first;
    for (const test::Sample& s : test::Samples(listed, 40)) {
      for (const bool weights : {false, true}) {
        const Operation operation = MakeOperation(s.op, s.operands, s.output, weights);
        if (ExpectSame(operation, seed += 10)) continue;
        missing += weights ? 0 : 1;
        if (first.empty()) first = TextOf(operation);
      }
    }
    const auto may = kMayMiss.find(ops::NameOf(listed));
    EXPECT_LE(missing, may == kMayMiss.end() ? 0 : may->second)
        << ops::NameOf(listed) << ": " << first;
  }
}

// Sizes at which the library takes its fast paths: blocked channels, packed weights, threads'
// tails.
TEST_F(KernelTest, ConvolutionsOfNetworks) {
  for (const std::int64_t group : {1, 4, 32}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const int form : {0, 1, 2, 3}) {
        ops::Conv conv{.strides = {stride, stride}, .pads = {1, 1, 1, 1}, .group = group};
        conv.residual = form >= 2 ? 1 : 0;
        conv.activation = ops::Activation(form);
        const std::int64_t out = stride == 1 ? 14 : 7;
        std::vector<graph::Extents> operands{{1, 64, 14, 14}, {96, 64 / group, 3, 3}};
        if (form % 2 == 1) operands.push_back({96});
        if (conv.residual == 1) operands.push_back({1, 96, out, out});
        if (96 % group != 0) continue;
        EXPECT_TRUE(ExpectSame(MakeOperation(conv, operands, {1, 96, out, out}, true), 7));
      }
    }
  }
}

TEST_F(KernelTest, ProductsOfNetworks) {
  const auto same = [&](graph::Extents a, graph::Extents b, graph::Extents c, bool weight) {
    return ExpectSame(MakeOperation(ops::MatMul{}, {a, b}, c, weight), 3);
  };
  EXPECT_TRUE(same({1, 64, 768}, {768, 100}, {1, 64, 100}, true));
  EXPECT_TRUE(same({2, 3, 10, 33}, {33, 17}, {2, 3, 10, 17}, false));
  EXPECT_TRUE(same({1, 12, 64, 64}, {1, 12, 64, 16}, {1, 12, 64, 16}, false));
  EXPECT_TRUE(same({12, 8, 4}, {1, 4, 5}, {12, 8, 5}, true));
}

// Images whose channels fill blocks: parts of them, padded, and put together again.
TEST_F(KernelTest, ImagesInBlocks) {
  const graph::Extents x{2, 32, 7, 5};
  const auto same = [&](const ops::Operator& op, const std::vector<graph::Extents>& operands,
                        const graph::Extents& y) {
    EXPECT_TRUE(ExpectSame(MakeOperation(op, operands, y), 11));
  };
  same(ops::Slice{.axis = 1, .start = 3, .end = 19}, {x}, {2, 16, 7, 5});
  same(ops::Slice{.axis = 1, .start = 16, .end = 21}, {x}, {2, 5, 7, 5});
  same(ops::Slice{.axis = 2, .start = 1, .end = 7, .step = 2}, {x}, {2, 32, 3, 5});
  same(ops::Split{.axis = 1, .parts = 2, .index = 1}, {x}, {2, 16, 7, 5});
  same(ops::Pad{.begins = {0, 0, 1, 2}, .ends = {0, 0, 0, 1}}, {x}, {2, 32, 8, 8});
  same(ops::Concat{.axis = 1}, {x, x, x}, {2, 96, 7, 5});
  same(ops::Concat{.axis = 1}, {x, {2, 3, 7, 5}}, {2, 35, 7, 5});
  same(ops::Concat{.axis = 1}, {{2, 8, 7, 5}, {2, 24, 7, 5}}, x);
  same(ops::Concat{.axis = 3}, {x, x}, {2, 32, 7, 10});
  same(ops::Transpose{.perm = {0, 2, 3, 1}}, {x}, {2, 7, 5, 32});
}

TEST_F(KernelTest, AnOperandReadTwiceIsOneTensor) {
  Operation twice = MakeOperation(ops::Add{}, {{100}, {100}}, {100});
  twice.operands[1].same_as = 0;
  const auto kernel = cpu::MakeKernel(library_, twice);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->operands()[0].get_data_handle(), kernel->operands()[1].get_data_handle());
  EXPECT_TRUE(ExpectSame(twice, 5));
}

TEST_F(KernelTest, WhatDoesNotFitInMemoryHasNoKernel) {
  EXPECT_EQ(cpu::MakeKernel(library_,
                            MakeOperation(ops::Neg{}, {{1 << 20, 1 << 12}}, {1 << 20, 1 << 12})),
            nullptr);
}

}  // namespace
}  // namespace tenon::optimizer
