// ONNX's own node tests (Debian's libonnx-testdata): every model goes in and out again and is
// valid, and where all of it is understood, our evaluator computes the expected outputs. That
// checks the definitions of core/ops and the hooks of optimizer/onnx from outside.
#include <iostream>
#include <map>

#include "tests/optimizer/onnx_support.h"

namespace tenon::optimizer {
namespace {

namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";

class NodeTests : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(kData)) << "install the Debian package libonnx-testdata";
  }
};

TEST_P(NodeTests, GoInAndOutAgain) {
  testing::TempFolder folder;
  int tried = 0;
  for (const fs::path& path : test::ModelsIn(kData / GetParam())) {
    const auto model = Import(path);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_TRUE(test::RoundTrip(*model, folder / "model.onnx").ok()) << path;
    ++tried;
  }
  std::cout << tried << " models\n";
  EXPECT_GE(tried, 20);
}

INSTANTIATE_TEST_SUITE_P(Data, NodeTests,
                         ::testing::Values("node", "simple", "pytorch-converted",
                                           "pytorch-operator"),
                         [](const auto& which) {
                           std::string name = which.param;
                           std::erase(name, '-');
                           return name;
                         });

// Runs the data of all models in `folder` that are understood; how many there are by the operator
// that computes the (first) output.
std::map<std::string, int> RunUnderstood(const fs::path& folder) {
  std::map<std::string, int> by_operator;
  for (const fs::path& path : test::ModelsIn(folder)) {
    const auto model = Import(path);
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) continue;
    const graph::Graph& g = model->graph();
    const graph::Node& last = g.node(g.outputs()[0]);
    if (test::OpaqueCount(g) > 0 || last.is_input()) continue;
    const test::Errors errors = test::RunData(*model, path.parent_path() / "test_data_set_0");
    const std::string name = path.parent_path().filename();
    EXPECT_LE(errors.engine, 2e-6) << path;
    // The definition of Softmax overflows where the engine, and ONNX, do not.
    const bool overflows = name == "test_softmax_large_number";
    EXPECT_LE(overflows ? 0 : errors.definition, 2e-6) << path;
    if (errors.floats) ++by_operator[std::string(ops::NameOf(*last.op))];
  }
  for (const auto& [name, count] : by_operator) std::cout << name << ' ' << count << ", ";
  std::cout << "\n";
  return by_operator;
}

int Total(const std::map<std::string, int>& counts) {
  int total = 0;
  for (const auto& [name, count] : counts) total += count;
  return total;
}

TEST(UnderstoodTest, NodeTestsHaveTheExpectedOutputs) {
  EXPECT_GE(Total(RunUnderstood(kData / "node")), 100);
}

// Node tests give axes, shapes and pads as inputs; as constants they are understood.
TEST(UnderstoodTest, NodeTestsWithConstantInputsHaveTheExpectedOutputs) {
  testing::TempFolder folder;
  test::RunScript("optimizer/onnx_models.py", {folder.path(), "constants"});
  const auto counts = RunUnderstood(folder / "constants");
  for (const char* name : {"Reshape", "Slice", "ReduceSum"}) {
    EXPECT_GE(counts.contains(name) ? counts.at(name) : 0, 1) << name;
  }
  EXPECT_GE(Total(counts), 30);
}

TEST(UnderstoodTest, FormsOfOlderOpsetsHaveTheOutputsOfNumpy) {
  testing::TempFolder folder;
  test::RunScript("optimizer/onnx_models.py", {folder.path(), "opsets"});
  EXPECT_EQ(Total(RunUnderstood(folder / "opsets")) + 4,
            int(test::ModelsIn(folder / "opsets").size()))
      << "(the four Dropouts are aliases)";
}

}  // namespace
}  // namespace tenon::optimizer
