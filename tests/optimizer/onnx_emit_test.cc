// Writing every operator in the forms of several opsets, and reading it back: the importer's hooks,
// which ONNX's node tests check, are the judge.
#include <fstream>
#include <sstream>

#include "tests/optimizer/onnx_support.h"
#include "tests/support/random_operator.h"

namespace tenon::optimizer {
namespace {

std::string Text(const graph::Extents& extents) {
  if (extents.empty()) return "s";
  std::string out;
  for (std::int64_t n : extents) out += (out.empty() ? "" : "x") + std::to_string(n);
  return out;
}

// What older opsets cannot say.
bool HasForm(const ops::Operator& op, int opset) {
  if (const auto* slice = std::get_if<ops::Slice>(&op)) return opset >= 10 || slice->step == 1;
  if (const auto* gelu = std::get_if<ops::Gelu>(&op)) return opset >= 9 || gelu->approximate == 1;
  if (std::holds_alternative<ops::Erf>(op)) return opset >= 9;
  const bool broadcasts = std::holds_alternative<ops::Max>(op) ||
                          std::holds_alternative<ops::Min>(op) ||
                          std::holds_alternative<ops::Clip>(op);
  return opset >= 8 || !broadcasts;
}

class EmitTest : public ::testing::TestWithParam<int> {};

TEST_P(EmitTest, EveryOperatorIsReadBackAsWhatItWas) {
  // A model for each sample, whose one node is foreign; its graph is then replaced by the operator.
  testing::TempFolder folder;
  std::vector<tenon::test::Sample> samples;
  std::ostringstream lines;
  for (const ops::Operator& listed : ops::AllOperators()) {
    if (ops::IsOpaque(listed)) continue;
    for (tenon::test::Sample& s : tenon::test::Samples(listed, 8)) {
      if (!HasForm(s.op, GetParam())) continue;
      lines << 'm' << samples.size() << ' ' << GetParam();
      for (const graph::Extents& e : s.operands) lines << ' ' << Text(e);
      lines << " -> " << Text(s.output) << '\n';
      samples.push_back(std::move(s));
    }
  }
  const std::string list = folder.Write("shapes", lines.str());
  test::RunScript("optimizer/onnx_models.py", {"--shapes", list, folder.path()});
  for (std::size_t k = 0; k < samples.size(); ++k) {
    auto model = Import(folder / ("m" + std::to_string(k) + ".onnx"));
    ASSERT_TRUE(model.ok()) << model.status();
    graph::Graph g = model->graph();
    std::vector<graph::NodeId> operands;
    for (std::size_t o = 0; o < samples[k].operands.size(); ++o) {
      operands.push_back(g.input_node(std::int32_t(o)));
    }
    const auto y = g.Add(samples[k].op, operands);
    ASSERT_TRUE(y.ok()) << y.status();
    g.SetOutputs({*y});
    ASSERT_TRUE(model->SetGraph(std::move(g)).ok()) << samples[k].Text();
    const auto again = test::RoundTrip(*model, folder / "out.onnx_", 1e-6);
    ASSERT_TRUE(again.ok()) << samples[k].Text();
    EXPECT_EQ(test::OpaqueCount(again->graph()), 0) << samples[k].Text();
  }
  EXPECT_GE(samples.size(), 200u);
}

INSTANTIATE_TEST_SUITE_P(Opset, EmitTest, ::testing::Values(7, 10, 13, 17),
                         ::testing::PrintToStringParamName());

// A model with inputs x0 .. of these shapes and an output of shape `out`.
class RewriteTest : public ::testing::Test {
 protected:
  Model Start(const std::string& shapes, int opset = 13) {
    const std::string list =
        folder_.Write("shapes", "m " + std::to_string(opset) + " " + shapes + "\n");
    test::RunScript("optimizer/onnx_models.py", {"--shapes", list, folder_.path()});
    auto model = Import(folder_ / "m.onnx");
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  // The operator types of what a graph is written as.
  std::string Written(Model& model, graph::Graph g, graph::NodeId output) {
    g.SetOutputs({output});
    EXPECT_TRUE(model.SetGraph(std::move(g)).ok());
    const std::string path = folder_ / "out.onnx_";
    EXPECT_TRUE(test::RoundTrip(model, path, 1e-6).ok());
    return testing::Run({"/usr/bin/python3", "-c",
                         "import onnx, sys\n"
                         "print(*[n.op_type for n in onnx.load(sys.argv[1]).graph.node])\n",
                         path})
        .out;
  }
  testing::TempFolder folder_;
};

TEST_F(RewriteTest, FusedConvolutionsAreTakenApart) {
  Model model = Start("1x2x4x4 3x2x1x1 3 1x3x4x4 -> 1x3x4x4");
  graph::Graph g = model.graph();
  const auto y = g.Add(ops::Conv{.residual = 1, .activation = ops::Activation::kRelu},
                       {g.input_node(0), g.input_node(1), g.input_node(2), g.input_node(3)});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Written(model, g, *y), "Conv Add Relu\n");
}

TEST_F(RewriteTest, ClipWithConstantBoundsHasAttributesInOldOpsets) {
  for (const auto& [opset, written] : {std::pair{7, "Clip\n"}, std::pair{13, "Clip\n"}}) {
    Model model = Start("2x3 -> 2x3", opset);
    graph::Graph g = model.graph();
    const auto low = g.Add(ops::Fill{.shape = {}, .value = -1}, std::vector<graph::NodeId>{});
    const auto high = g.Add(ops::Fill{.shape = {}, .value = 2}, std::vector<graph::NodeId>{});
    EXPECT_EQ(Written(model, g, *g.Add(ops::Clip{}, {g.input_node(0), *low, *high})), written);
  }
}

TEST_F(RewriteTest, LayerNormalizationIsTakenApartBeforeOpset17) {
  for (const auto& [opset, written] :
       {std::pair{13, "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul\n"},
        std::pair{17, "LayerNormalization\n"}}) {
    Model model = Start("2x3 3 -> 2x3", opset);
    graph::Graph g = model.graph();
    const auto y = g.Add(ops::LayerNormalization{}, {g.input_node(0), g.input_node(1)});
    EXPECT_EQ(Written(model, g, *y), written);
  }
}

TEST_F(RewriteTest, AllPartsOfASplitAreOneNode) {
  Model model = Start("4x6 -> 4x2");
  graph::Graph g = model.graph();
  std::vector<graph::NodeId> parts;
  for (std::int64_t k = 0; k < 3; ++k) {
    parts.push_back(*g.Add(ops::Split{.axis = 1, .parts = 3, .index = k}, {g.input_node(0)}));
  }
  const auto ab = g.Add(ops::Mul{}, {parts[0], parts[1]});
  const auto abc = g.Add(ops::Mul{}, {*ab, parts[2]});
  EXPECT_EQ(Written(model, g, *abc), "Split Mul Mul\n");
  EXPECT_EQ(Written(model, g, *ab), "Slice Slice Mul\n");
}

TEST_F(RewriteTest, ConstantsAreInitializers) {
  Model model = Start("2x2 -> 2x2");
  graph::Graph g = model.graph();
  const auto eye = g.Add(ops::Eye{.size = 2}, std::vector<graph::NodeId>{});
  const auto y = g.Add(ops::MatMul{}, {g.input_node(0), *eye});
  EXPECT_EQ(Written(model, g, *y), "MatMul\n");
  EXPECT_EQ(Written(model, g, *eye), "Identity\n");
}

TEST_F(RewriteTest, WhatHasNoFormIsSaidAndNotWritten) {
  Model model = Start("4x6 -> 4x3", 9);
  graph::Graph g = model.graph();
  const auto y = g.Add(ops::Slice{.axis = 1, .start = 0, .end = 6, .step = 2}, {g.input_node(0)});
  g.SetOutputs({*y});
  ASSERT_TRUE(model.SetGraph(g).ok());
  const auto written = Export(model, folder_ / "none.onnx");
  EXPECT_EQ(written.status().code(), absl::StatusCode::kFailedPrecondition) << written.status();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none.onnx"));
}

}  // namespace
}  // namespace tenon::optimizer
