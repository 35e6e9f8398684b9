// ONNX's own node tests (Debian's libonnx-testdata): every model goes in and out again and is
// valid, and where all of it is understood, our evaluator computes the expected outputs. That
// checks the definitions of core/ops and the hooks of optimizer/onnx from outside.
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

struct Errors {
  double definition = 0, engine = 0;
  bool floats = true;  // All outputs are.
};

// The outputs by the fast engine.
std::vector<Values> EvaluateFast(const graph::Graph& g, const std::vector<Values>& inputs) {
  std::vector<Values> values(g.size());
  for (graph::NodeId id : g.Reachable(g.outputs())) {
    const graph::Node& n = g.node(id);
    if (n.is_input()) {
      values[std::size_t(id)] = inputs[std::size_t(n.input)];
      continue;
    }
    std::vector<const Values*> operands;
    for (graph::NodeId o : n.operands) operands.push_back(&values[std::size_t(o)]);
    auto value = Apply(*n.op, operands, graph::Concrete(n.shape()));
    EXPECT_TRUE(value.ok()) << value.status();
    if (value.ok()) values[std::size_t(id)] = *std::move(value);
  }
  std::vector<Values> out;
  for (graph::NodeId id : g.outputs()) out.push_back(values[std::size_t(id)]);
  return out;
}

// Runs data set 0 of a model.
Errors RunData(const Model& model, const fs::path& folder) {
  const graph::Graph& symbolic = model.graph();
  const std::vector<std::int64_t> sizes(symbolic.symbols().size(), 1);
  const auto g = graph::Instantiate(symbolic, symbolic.outputs(), sizes);
  EXPECT_TRUE(g.ok()) << g.status();
  std::vector<Values> inputs;
  int next = 0;
  for (const graph::Input& input : g->inputs()) {
    Values value;  // Stays empty for integers, which feed no operator.
    if (input.kind == graph::InputKind::kWeight) {
      const std::int32_t number = std::int32_t(inputs.size());
      if (graph::IsFloating(g->node(g->input_node(number)).type->dtype)) {
        value = model.WeightValue(input.name).value();
      }
    } else if (auto read = ReadTensorFile(folder / ("input_" + std::to_string(next++) + ".pb"));
               read.ok()) {
      value = std::move(read->value);
    }
    inputs.push_back(std::move(value));
  }
  const auto slow = eval::Evaluate(*g, g->outputs(), inputs);
  EXPECT_TRUE(slow.ok()) << slow.status();
  const std::vector<Values> fast = EvaluateFast(*g, inputs);
  Errors errors;
  for (std::size_t k = 0; slow.ok() && k < fast.size(); ++k) {
    const auto expected = ReadTensorFile(folder / ("output_" + std::to_string(k) + ".pb"));
    errors.floats = errors.floats && expected.ok();
    if (!expected.ok()) continue;
    EXPECT_EQ(expected->value.extents, fast[k].extents);
    if (expected->value.extents != fast[k].extents) return {1, 1, true};
    errors.definition = std::max(errors.definition, RelativeError(expected->value, (*slow)[k]));
    errors.engine = std::max(errors.engine, RelativeError(expected->value, fast[k]));
  }
  return errors;
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
    const Errors errors = RunData(*model, path.parent_path() / "test_data_set_0");
    const std::string name = path.parent_path().filename();
    EXPECT_LE(errors.engine, 2e-6) << path;
    // The definition of Softmax overflows where the engine, and ONNX, do not.
    const bool overflows = name == "test_softmax_large_number";
    EXPECT_LE(overflows ? 0 : errors.definition, 2e-6) << path;
    if (errors.floats) names.insert(name);
  }
  std::cout << names.size() << " understood:";
  for (const std::string& name : names) std::cout << ' ' << name;
  std::cout << '\n';
  EXPECT_GE(names.size(), std::string_view(GetParam()) == "node" ? 60u : 0u);
}

INSTANTIATE_TEST_SUITE_P(Data, NodeTests,
                         ::testing::Values("node", "simple", "pytorch-converted",
                                           "pytorch-operator"),
                         [](const auto& which) {
                           std::string name = which.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tenon::optimizer
