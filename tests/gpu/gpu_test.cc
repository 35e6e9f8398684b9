// The CUDA module on a GPU. Label gpu: it fails where there is none.
#include <gmock/gmock.h>

#include "optimizer/device/device.h"
#include "optimizer/device/measured.h"
#include "tests/gpu/module_test.h"
#include "tests/optimizer/lecture_graphs.h"

namespace tenon::optimizer {
namespace {

using ::testing::HasSubstr;

TEST(GpuTest, EveryOperatorComputesWhatItMeans) {
  const auto module = cuda::Module::Open(TENON_CUDA_MODULE);
  ASSERT_TRUE(module.ok()) << module.status();
  ExpectEveryOperator(**module);
  ExpectConvolutionsOfNetworks(**module);
}

TEST(GpuTest, LargerWorkTakesLonger) {
  const auto meter = cuda::OpenMeter(TENON_CUDA_MODULE);
  ASSERT_TRUE(meter.ok()) << meter.status();
  EXPECT_THAT((*meter)->identity(), HasSubstr("cuBLASLt"));
  const graph::Extents small{64, 64}, large{4096, 4096};
  const auto results = (*meter)->Measure(
      std::vector<Operation>{MakeOperation(ops::MatMul{}, {small, small}, small),
                             MakeOperation(ops::MatMul{}, {large, large}, large)});
  ASSERT_TRUE(results[0] && results[1]);
  EXPECT_GT(results[1]->warm_us, 5 * results[0]->warm_us);
}

TEST(GpuTest, ANetworkIsMeasuredInFull) {
  auto meter = cuda::OpenMeter(TENON_CUDA_MODULE);
  ASSERT_TRUE(meter.ok()) << meter.status();
  const auto device = MeasuredDevice::Create("cuda", *std::move(meter), {});
  ASSERT_TRUE(device.ok());
  const graph::Graph block = ResnetBlock();
  EXPECT_GT(CostOfGraph(**device, block, block.outputs()).us, 0);
  EXPECT_TRUE((*device)->Notes().empty()) << (*device)->Notes().front();
}

}  // namespace
}  // namespace tenon::optimizer
