// Models optimized with the packs that generate_test made, on the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/packs.h"
#include "tests/support/process.h"

namespace tenon {
namespace {

using nlohmann::json;
using testing::RunResult;
using testing::TempFolder;
using testing::Tenon;

constexpr const char* kPython = "/usr/bin/python3";

// Writes a network of tests/models/zoo.py and returns its path.
std::string Zoo(const TempFolder& folder, const std::string& name, const std::string& size) {
  const RunResult r = testing::Run({kPython, TENON_SOURCE_DIR "/tests/models/zoo.py", "--out",
                                    folder.path(), "--size", size, "--only", name});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return folder / (name + ".onnx");
}

struct Optimized {
  RunResult run;
  json report;
  std::string model;
};

Optimized Optimize(const TempFolder& folder, const std::string& model, const std::string& device,
                   const std::vector<std::string>& more = {}) {
  Optimized result;
  result.model = folder / ("optimized." + device + ".onnx");
  const std::string report = folder / ("report." + device + ".json");
  std::vector<std::string> arguments = {"optimize",     model,
                                        "-o",           result.model,
                                        "--pack",       e2e::PackPath("matrix"),
                                        "--pack",       e2e::PackPath("conv"),
                                        "--device",     "roofline:" + device,
                                        "--alpha",      "1.5",
                                        "--time-limit", "30",
                                        "--report",     report};
  arguments.insert(arguments.end(), more.begin(), more.end());
  result.run = Tenon(arguments, {.limit = std::chrono::minutes(4)});
  EXPECT_EQ(result.run.exit_code, 0) << result.run.err;
  if (result.run.exit_code == 0) result.report = json::parse(testing::ReadFile(report));
  return result;
}

void ExpectSound(const json& report) {
  EXPECT_LE(report["cost_after_us"], report["cost_before_us"]);
  EXPECT_LE(report["max_relative_error"], 1e-4);
  EXPECT_LE(report["lower_bound_us"], report["cost_after_us"]);
  for (const char* field : {"nodes_before", "nodes_after", "rules", "seconds"}) {
    EXPECT_TRUE(report.contains(field)) << field;
  }
}

struct Goal {
  const char* model;
  const char* device;
  double before_us;   // Known, to a tenth.
  double at_most_us;  // To be reached.
};

void Reach(const Goal& goal, const std::vector<std::string>& more = {}) {
  TempFolder folder;
  const Optimized result = Optimize(folder, Zoo(folder, goal.model, "full"), goal.device, more);
  ASSERT_FALSE(result.report.is_null());
  ExpectSound(result.report);
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
  const Optimized result = Optimize(folder, Zoo(folder, "resnet_block", "full"), "weak");
  ASSERT_FALSE(result.report.is_null());
  ExpectSound(result.report);
  EXPECT_NEAR(result.report["cost_before_us"].get<double>(), 5182.4, 0.06);
  const RunResult kernels = testing::Run(
      {kPython, "-c",
       "import onnx, sys\n"
       "m = onnx.load(sys.argv[1], load_external_data=False)\n"
       "w = {t.name: list(t.dims) for t in m.graph.initializer}\n"
       "print(sorted(w[n.input[1]][2:] for n in m.graph.node if n.op_type == 'Conv'))\n",
       result.model});
  EXPECT_EQ(kernels.out, "[[1, 1], [3, 3], [3, 3]]\n") << kernels.err;
}

// The folder of a Node.js that has onnxruntime-node: $TENON_NODE_PATH, or what `npm install
// --prefix BUILD/node onnxruntime-node` made. Empty if there is none.
std::string NodePath() {
  std::vector<std::string> places;
  if (const char* variable = std::getenv("TENON_NODE_PATH")) places.emplace_back(variable);
  places.push_back(testing::Binary("../node/node_modules"));
  for (const std::string& place : places) {
    if (std::filesystem::exists(place + "/onnxruntime-node")) return place;
  }
  return "";
}

class NetworkTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NetworkTest, CostNeverRisesAndOutputsAgree) {
  TempFolder folder;
  const std::string model = Zoo(folder, GetParam(), "small");
  const std::string node = NodePath();
  for (const char* device : {"h100", "weak"}) {
    const Optimized result = Optimize(folder, model, device, {"--time-limit", "10"});
    ASSERT_FALSE(result.report.is_null());
    ExpectSound(result.report);
    if (node.empty()) continue;
    const RunResult other =
        testing::Run({"node", TENON_SOURCE_DIR "/tests/e2e/ort_compare.js", model, result.model},
                     {.environment = {{"NODE_PATH", node}}});
    ASSERT_EQ(other.exit_code, 0) << other.out << other.err;
    EXPECT_LE(json::parse(other.out)["max_relative_error"].get<double>(), 1e-4);
  }
  if (node.empty()) {
    std::cout << "NOT COMPARED WITH ONNX RUNTIME: install it for Node.js by\n"
                 "  npm install --ignore-scripts --prefix build/node onnxruntime-node@1.30.0\n";
    GTEST_SKIP() << "our own evaluator agrees; ONNX Runtime is not installed";
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, NetworkTest,
                         ::testing::Values("resnet50_taso", "squeezenet11", "bert_taso_sm",
                                           "mobilenet_v2", "bert_base"),
                         [](const auto& name) { return std::string(name.param); });

TEST(OptimizeTest, CtrlCWritesTheBestSoFar) {
  TempFolder folder;
  const std::string model = Zoo(folder, "resnet50_taso", "small");
  const RunResult r = Tenon({"optimize", model, "-o", folder / "o.onnx", "--pack",
                             e2e::PackPath("conv"), "--time-limit", "300", "--alpha", "2"},
                            {.signal = SIGINT, .signal_after = "search"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_LT(r.seconds, 60);
  EXPECT_TRUE(std::filesystem::exists(folder / "o.onnx"));
}

}  // namespace
}  // namespace tenon
