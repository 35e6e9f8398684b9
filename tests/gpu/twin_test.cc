// Plans, the border to modules and the meter on it, on the twin of the CUDA module.
#include <gmock/gmock.h>

#include <cstdlib>

#include "optimizer/device/device.h"
#include "optimizer/device/measured.h"
#include "tests/gpu/module_test.h"

namespace tenon::optimizer {
namespace {

using ::testing::HasSubstr;

std::string Twin() { return TENON_TWIN; }

TEST(CudaTwinTest, EveryOperatorHasAPlanThatComputesWhatItMeans) {
  const auto module = cuda::Module::Open(Twin());
  ASSERT_TRUE(module.ok()) << module.status();
  ExpectEveryOperator(**module);
  ExpectConvolutionsOfNetworks(**module);
}

TEST(CudaTwinTest, TheMeterTimesWhatHasAPlan) {
  const auto meter = cuda::OpenMeter(Twin());
  ASSERT_TRUE(meter.ok()) << meter.status();
  EXPECT_EQ((*meter)->identity(), "cuda twin");
  const std::vector<Operation> operations{MakeOperation(ops::Relu{}, {{1000}}, {1000}),
                                          MakeOperation(ops::Eye{.size = 8}, {}, {8, 8})};
  const auto results = (*meter)->Measure(operations);
  ASSERT_EQ(results.size(), 2u);
  ASSERT_TRUE(results[0]);
  EXPECT_GT(results[0]->warm_us, 0);
  EXPECT_FALSE(results[1]);
}

TEST(CudaTwinTest, AnOperandReadTwiceIsOneTensor) {
  const auto module = cuda::Module::Open(Twin());
  ASSERT_TRUE(module.ok());
  Operation twice = MakeOperation(ops::Mul{}, {{50}, {50}}, {50});
  twice.operands[1].same_as = 0;
  EXPECT_TRUE(ExpectMeaningOn(**module, twice, 3));
}

TEST(CudaTwinTest, WhatIsNoModuleIsSaidSo) {
  for (const std::string& path : {std::string("no/such/module.so"), std::string("/dev/null"),
                                  std::string("/proc/self/exe")}) {
    const auto module = cuda::Module::Open(path);
    EXPECT_EQ(module.status().code(), absl::StatusCode::kFailedPrecondition) << path;
    EXPECT_THAT(base::Message(module.status()), HasSubstr("device cuda")) << path;
  }
}

TEST(CudaTwinTest, TheDeviceTakesNoThreads) {
  EXPECT_EQ(OpenDevice("cuda:threads=2").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(IsMeasured("cuda:cache=cold"));
}

}  // namespace
}  // namespace tenon::optimizer
