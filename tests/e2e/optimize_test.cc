// Models optimized with the packs that generate_test made, on the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/optimized.h"
#include "tests/e2e/packs.h"
#include "tests/support/process.h"

namespace tenon {
namespace {

using nlohmann::json;
using testing::RunResult;
using testing::TempFolder;
using testing::Tenon;

// The folder of a Node.js that has onnxruntime-node: $TENON_NODE_PATH, or what `npm install
// --prefix BUILD/node onnxruntime-node` made. Empty if there is none.
std::string NodePath() {
  std::vector<std::string> places;
  if (const char* variable = std::getenv("TENON_NODE_PATH")) places.emplace_back(variable);
  places.push_back(testing::Binary("../node/node_modules"));
  places.emplace_back(TENON_SOURCE_DIR "/build/node/node_modules");
  for (const std::string& place : places) {
    if (std::filesystem::exists(place + "/onnxruntime-node")) return place;
  }
  return "";
}

class NetworkTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NetworkTest, CostNeverRisesAndOutputsAgree) {
  TempFolder folder;
  const std::string model = e2e::Zoo(folder, GetParam(), "small");
  const std::string node = NodePath();
  for (const char* device : {"h100", "weak"}) {
    const e2e::Optimized result = e2e::Optimize(folder, model, device, {"--time-limit", "10"});
    ASSERT_FALSE(result.report.is_null());
    e2e::ExpectSound(result.report);
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
  const std::string model = e2e::Zoo(folder, "resnet50_taso", "small");
  const RunResult r = Tenon({"optimize", model, "-o", folder / "o.onnx", "--pack",
                             e2e::PackPath("conv"), "--time-limit", "300", "--alpha", "2"},
                            {.signal = SIGINT, .signal_after = "search"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_LT(r.seconds, 60);
  EXPECT_TRUE(std::filesystem::exists(folder / "o.onnx"));
}

}  // namespace
}  // namespace tenon
