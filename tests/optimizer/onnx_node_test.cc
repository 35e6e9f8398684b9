// ONNX's own node tests (Debian's libonnx-testdata): every model goes in and out again and is valid,
// and where all of it is understood, our evaluator computes the expected outputs. That checks the
// definitions of core/ops and the hooks of optimizer/onnx from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "core/eval/eval.h"
#include "optimizer/eval/compare.h"
#include "optimizer/onnx/model.h"
#include "optimizer/onnx/tensor_file.h"
#include "tests/support/process.h"

namespace tenon::optimizer {
namespace {

namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";

// The models of one folder of the test data, by path.
std::vector<fs::path> Models(const std::string& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(kData / folder)) {
    if (fs::exists(entry.path() / "model.onnx")) out.push_back(entry.path() / "model.onnx");
  }
  std::ranges::sort(out);
  return out;
}

// Whether the outputs depend on operators of the algebra only.
bool Understood(const graph::Graph& g) {
  int operators = 0;
  for (graph::NodeId id : g.Reachable(g.outputs())) {
    const graph::Node& n = g.node(id);
    if (n.is_input()) continue;
    if (ops::IsOpaque(*n.op)) return false;
    ++operators;
  }
  return operators > 0;
}

// Runs data set 0 in the definition's evaluator; -1 when a file holds no floats, else the largest
// relative error of an output.
double RunData(const Model& model, const fs::path& folder) {
  const graph::Graph& symbolic = model.graph();
  const std::vector<std::int64_t> sizes(symbolic.symbols().size(), 1);
  const auto g = graph::Instantiate(symbolic, symbolic.outputs(), sizes);
  EXPECT_TRUE(g.ok()) << g.status();
  std::vector<Values> inputs;
  int next = 0;
  for (const graph::Input& input : g->inputs()) {
    if (input.kind == graph::InputKind::kWeight) {
      const auto value = model.WeightValue(input.name);
      if (value.ok()) inputs.push_back(*value);
      if (!value.ok()) inputs.push_back({});
      continue;
    }
    const auto value = ReadTensorFile(folder / ("input_" + std::to_string(next++) + ".pb"));
    inputs.push_back(value.ok() ? value->value : Values{});  // Integers feed no operator.
  }
  const auto outputs = eval::Evaluate(*g, g->outputs(), inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  double worst = 0;
  for (std::size_t k = 0; outputs.ok() && k < outputs->size(); ++k) {
    const auto expected = ReadTensorFile(folder / ("output_" + std::to_string(k) + ".pb"));
    if (!expected.ok()) return -1;
    EXPECT_EQ(expected->value.extents, (*outputs)[k].extents);
    if (expected->value.extents != (*outputs)[k].extents) return 1;
    worst = std::max(worst, RelativeError(expected->value, (*outputs)[k]));
  }
  return worst;
}

// Import, export, import again, compare.
void RoundTrip(const fs::path& path, const Model& model, const std::string& out) {
  const auto written = Export(model, out);
  ASSERT_TRUE(written.ok()) << path << ": " << written.status();
  const auto again = Import(out);
  ASSERT_TRUE(again.ok()) << path << ": " << again.status();
  EXPECT_EQ(again->output_names(), model.output_names()) << path;
  const auto same = Compare(model, *again);
  ASSERT_TRUE(same.ok()) << path << ": " << same.status();
  EXPECT_LE(same->max_relative_error, 1e-12) << path << ": " << same->worst;
}

class NodeTests : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(kData)) << "install the Debian package libonnx-testdata";
  }
};

TEST_P(NodeTests, GoInAndOutAgain) {
  testing::TempFolder folder;
  int tried = 0;
  for (const fs::path& path : Models(GetParam())) {
    const auto model = Import(path);
    ASSERT_TRUE(model.ok()) << model.status();
    RoundTrip(path, *model, folder / "model.onnx");
    ++tried;
  }
  std::cout << tried << " models\n";
  EXPECT_GE(tried, 20);
}

TEST_P(NodeTests, UnderstoodModelsComputeTheExpectedOutputs) {
  std::set<std::string> names;
  for (const fs::path& path : Models(GetParam())) {
    const auto model = Import(path);
    ASSERT_TRUE(model.ok()) << model.status();
    if (!Understood(model->graph())) continue;
    const double error = RunData(*model, path.parent_path() / "test_data_set_0");
    EXPECT_LE(error, 2e-4) << path;
    if (error >= 0) names.insert(path.parent_path().filename());
  }
  std::cout << names.size() << " understood:";
  for (const std::string& name : names) std::cout << ' ' << name;
  std::cout << '\n';
  EXPECT_GE(names.size(), std::string_view(GetParam()) == "node" ? 60u : 0u);
}

INSTANTIATE_TEST_SUITE_P(Data, NodeTests,
                         ::testing::Values("node", "simple", "pytorch-converted",
                                           "pytorch-operator"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tenon::optimizer
