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
  for (const auto& [device, search] : {std::pair{"h100", "backtrack"},
                                       {"weak", "backtrack"},
                                       {"h100", "eqsat"},
                                       {"weak", "eqsat"}}) {
    SCOPED_TRACE(std::string(search) + " on " + device);
    const e2e::Optimized result =
        e2e::Optimize(folder, model, device, {"--time-limit", "10", "--search", search});
    ASSERT_FALSE(result.report.is_null());
    e2e::ExpectSound(result.report);
    EXPECT_EQ(result.report["search"], search);
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
                                           "nasnet_a_1cell", "mobilenet_v2", "bert_base"),
                         [](const auto& name) { return std::string(name.param); });

// Models on which published optimizers gave wrong results, as they came out of the whole program,
// on the inputs that show it, evaluated by something that is not ours. With the default pack.
class KnownBugsTest : public ::testing::TestWithParam<const char*> {};

RunResult Evaluate(const TempFolder& folder) {
  return testing::Run({e2e::kPython, TENON_SOURCE_DIR "/tests/models/evaluate.py", folder.path()});
}

TEST_P(KnownBugsTest, EveryModelKeepsItsOutputs) {
  const std::filesystem::path models = TENON_SOURCE_DIR "/tests/models/known_bugs";
  TempFolder folder;
  int tried = 0, cheaper = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const std::string report = folder / (name + ".json");
    const RunResult r =
        Tenon({"optimize", entry.path() / "model.onnx", "-o", folder / (name + ".onnx"), "--search",
               GetParam(), "--report", report});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const json written = json::parse(testing::ReadFile(report));
    e2e::ExpectSound(written);
    cheaper += written["cost_after_us"] < written["cost_before_us"] ? 1 : 0;
    ++tried;
  }
  EXPECT_EQ(tried, 30);
  EXPECT_GE(cheaper, 3);  // Rules were at work.
  const RunResult values = Evaluate(folder);
  EXPECT_EQ(values.exit_code, 0) << values.out << values.err;
  EXPECT_THAT(values.out, ::testing::HasSubstr("30 models, 0 wrong"));
}

TEST(EvaluateTest, AWrongResultWouldBeSeen) {
  TempFolder folder;
  const RunResult made = testing::Run(
      {e2e::kPython, "-c",
       "import onnx, sys\n"
       "bugs, out = sys.argv[1:]\n"
       "m = onnx.load(bugs + '/negzero_add_zero/model.onnx')\n"  // Without the Add of 0.
       "m.graph.node[2].input[0] = m.graph.node[0].output[0]\n"
       "onnx.save(m, out + '/negzero_add_zero.onnx')\n"
       "m = onnx.load(bugs + '/avgpool_cip_mixed/model.onnx')\n"
       "m.graph.node[0].attribute.extend(m.graph.node[1].attribute)\n"
       "del m.graph.node[0].attribute[:-len(m.graph.node[1].attribute)]\n"
       "onnx.save(m, out + '/avgpool_cip_mixed.onnx')\n",
       TENON_SOURCE_DIR "/tests/models/known_bugs", folder.path()});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const RunResult values = Evaluate(folder);
  EXPECT_EQ(values.exit_code, 1);
  EXPECT_THAT(values.out, ::testing::HasSubstr("2 models, 2 wrong")) << values.out << values.err;
}

INSTANTIATE_TEST_SUITE_P(Search, KnownBugsTest, ::testing::Values("backtrack", "eqsat"),
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
