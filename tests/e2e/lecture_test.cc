// The cases of the lecture at their real size, with the packs that generate_test made.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/optimized.h"
#include "tests/support/process.h"

namespace tenon {
namespace {

using testing::RunResult;
using testing::TempFolder;

struct Goal {
  const char* model;
  const char* device;
  double before_us;   // Known, to a tenth.
  double at_most_us;  // To be reached.
};

void Reach(const Goal& goal, const std::vector<std::string>& more = {}) {
  TempFolder folder;
  const e2e::Optimized result =
      e2e::Optimize(folder, e2e::Zoo(folder, goal.model, "full"), goal.device, more);
  ASSERT_FALSE(result.report.is_null());
  e2e::ExpectSound(result.report);
  EXPECT_NEAR(result.report["cost_before_us"].get<double>(), goal.before_us, 0.06);
  EXPECT_LE(result.report["cost_after_us"].get<double>(), goal.at_most_us);
}

TEST(LectureTest, QkvBecomesOneProduct) { Reach({"qkv", "h100", 42.3, 34.3}); }
TEST(LectureTest, LoraIsFoldedIntoItsWeight) { Reach({"lora_x512", "h100", 39.7, 21.5}); }
TEST(LectureTest, ResidualFusionIsFound) { Reach({"resnet_block", "h100", 85.6, 38.9}); }
TEST(LectureTest, WithoutResidualFusionTheConvolutionsAreEnlargedAndMerged) {
  Reach({"resnet_block", "h100", 85.6, 57.9}, {"--without", "residual=1"});
}
TEST(LectureTest, WeakDeviceGainsLessAndNeverLoses) {
  Reach({"qkv", "weak", 1044.5, 1044.5});
  Reach({"lora_x512", "weak", 4547.6, 4547.6});
}
TEST(LectureTest, OnAWeakDeviceTheSmallConvolutionStaysSmall) {
  TempFolder folder;
  const e2e::Optimized result =
      e2e::Optimize(folder, e2e::Zoo(folder, "resnet_block", "full"), "weak");
  ASSERT_FALSE(result.report.is_null());
  e2e::ExpectSound(result.report);
  EXPECT_NEAR(result.report["cost_before_us"].get<double>(), 5182.4, 0.06);
  const RunResult kernels = testing::Run(
      {e2e::kPython, "-c",
       "import onnx, sys\n"
       "m = onnx.load(sys.argv[1], load_external_data=False)\n"
       "w = {t.name: list(t.dims) for t in m.graph.initializer}\n"
       "print(sorted(w[n.input[1]][2:] for n in m.graph.node if n.op_type == 'Conv'))\n",
       result.model});
  EXPECT_EQ(kernels.out, "[[1, 1], [3, 3], [3, 3]]\n") << kernels.err;
}

}  // namespace
}  // namespace tenon
