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

// By either search.
class LectureTest : public ::testing::TestWithParam<const char*> {
 protected:
  struct Goal {
    const char* model;
    const char* device;
    double before_us;  // Known, to a tenth.
    double after_us;   // Likewise: the best that is known, and no less without an error.
    int nodes;         // Of the result.
  };

  static e2e::Optimized Optimize(const TempFolder& folder, const Goal& goal,
                                 std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--search", GetParam()});
    return e2e::Optimize(folder, e2e::Zoo(folder, goal.model, "full"), goal.device, more);
  }

  static void Reach(const Goal& goal, const std::vector<std::string>& more = {}) {
    SCOPED_TRACE(std::string(goal.model) + " on " + goal.device);
    TempFolder folder;
    const e2e::Optimized result = Optimize(folder, goal, more);
    ASSERT_FALSE(result.report.is_null());
    e2e::ExpectSound(result.report);
    EXPECT_NEAR(result.report["cost_before_us"].get<double>(), goal.before_us, 0.06);
    EXPECT_NEAR(result.report["cost_after_us"].get<double>(), goal.after_us, 0.06);
    EXPECT_EQ(result.report["nodes_after"], goal.nodes);
    if (std::string(GetParam()) == "eqsat") ExpectProvedOptimal(result.report);
  }

  // Nothing that the rules lead to is cheaper: one e-graph, to which no rule adds anything.
  static void ExpectProvedOptimal(const nlohmann::json& report) {
    const nlohmann::json& extraction = report["extraction"];
    ASSERT_FALSE(extraction.is_null());
    EXPECT_EQ(extraction["pieces"], 1);
    EXPECT_EQ(extraction["optimal"], 1);
    EXPECT_EQ(extraction["saturated"], 1);
    EXPECT_EQ(extraction["gap"], 0);
    EXPECT_EQ(report["exploration"]["end"], "complete");
  }
};

INSTANTIATE_TEST_SUITE_P(Search, LectureTest, ::testing::Values("backtrack", "eqsat"),
                         [](const auto& name) { return std::string(name.param); });

TEST_P(LectureTest, QkvBecomesOneProduct) {
  Reach({"qkv", "h100", 42.3, 34.2, 4});
  Reach({"qkv", "weak", 1044.5, 1021.9, 4});
}
TEST_P(LectureTest, LoraIsFoldedIntoItsWeight) {
  Reach({"lora_x512", "h100", 39.7, 21.4, 1});
  Reach({"lora_x512", "weak", 4547.6, 4305.0, 1});
}
TEST_P(LectureTest, ConvolutionsAreMergedAndResidualsFused) {
  Reach({"resnet_block", "h100", 85.6, 34.5, 4});
}
TEST_P(LectureTest, WithoutResidualFusionTheConvolutionsAreEnlargedAndMerged) {
  Reach({"resnet_block", "h100", 85.6, 57.8, 6}, {"--without", "residual=1"});
}
TEST_P(LectureTest, NormalizationGoesIntoTheConvolution) {
  Reach({"conv_bn", "h100", 12.7, 4.3, 1});
  Reach({"conv_bn_bias", "h100", 8.5, 4.3, 1});
}
TEST_P(LectureTest, TwoAveragePoolsAndASumBecomeOnePool) {
  Reach({"two_avgpools", "h100", 13.7, 9.2, 2});
}

TEST_P(LectureTest, OnAWeakDeviceTheSmallConvolutionStaysSmall) {
  const Goal goal{"resnet_block", "weak", 5182.4, 3986.4, 3};
  Reach(goal);
  TempFolder folder;
  const e2e::Optimized result = Optimize(folder, goal);
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
