// Simplify and FoldWeights keep values, and take away what they promise to.
#include "optimizer/fold/fold.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "optimizer/fold/simplify.h"
#include "tests/optimizer/onnx_support.h"

namespace tenon::optimizer {
namespace {

using graph::Graph;
using graph::NodeId;

graph::TensorType Floats(const graph::Extents& extents) {
  return {graph::DataType::kFloat, graph::ToShape(extents)};
}

// The operators that the outputs need, in order.
std::vector<std::string> Operators(const Graph& g) {
  std::vector<std::string> out;
  for (NodeId id : g.Reachable(g.outputs())) {
    if (!g.node(id).is_input()) out.emplace_back(ops::NameOf(*g.node(id).op));
  }
  return out;
}

std::vector<std::string> Simplified(Graph g, NodeId output) {
  g.SetOutputs({output});
  const auto simple = Simplify(g);
  EXPECT_TRUE(simple.ok()) << simple.status();
  EXPECT_EQ(*simple->node(simple->outputs()[0]).type, *g.node(output).type);
  return Operators(*simple);
}

class SimplifyTest : public ::testing::Test {
 protected:
  SimplifyTest()
      : x(g.AddInput("x", graph::InputKind::kActivation, Floats({2, 6, 4}))),
        y(g.AddInput("y", graph::InputKind::kActivation, Floats({2, 6, 4}))) {}
  NodeId Add(const ops::Operator& op, std::vector<NodeId> operands) {
    const auto id = g.Add(op, operands);
    CHECK(id.ok());
    return *id;
  }
  Graph g;
  NodeId x, y;
};

TEST_F(SimplifyTest, WhatDoesNothingOrUndoesItselfGoes) {
  const NodeId back = Add(ops::Transpose{{2, 0, 1}}, {Add(ops::Transpose{{1, 2, 0}}, {x})});
  EXPECT_EQ(Simplified(g, back), std::vector<std::string>{});
  EXPECT_EQ(Simplified(g, Add(ops::Transpose{{0, 1, 2}}, {x})), std::vector<std::string>{});
  EXPECT_EQ(Simplified(g, Add(ops::Neg{}, {Add(ops::Neg{}, {x})})), std::vector<std::string>{});
  EXPECT_EQ(Simplified(g, Add(ops::Slice{.axis = 1, .start = 0, .end = 6}, {x})),
            std::vector<std::string>{});
  EXPECT_EQ(Simplified(g, Add(ops::Pad{{0, 0, 0}, {0, 0, 0}}, {x})), std::vector<std::string>{});
  const NodeId flat = Add(ops::Reshape{{48}}, {x});
  EXPECT_EQ(Simplified(g, Add(ops::Reshape{{2, 6, 4}}, {flat})), std::vector<std::string>{});
}

TEST_F(SimplifyTest, WhatFollowsItsLikeBecomesOne) {
  const NodeId twice = Add(ops::Transpose{{1, 2, 0}}, {Add(ops::Transpose{{1, 2, 0}}, {x})});
  EXPECT_EQ(Simplified(g, twice), std::vector<std::string>{"Transpose"});
  const NodeId relu = Add(ops::Relu{}, {Add(ops::Relu{}, {x})});
  EXPECT_EQ(Simplified(g, relu), std::vector<std::string>{"Relu"});
  const NodeId slice = Add(ops::Slice{.axis = 1, .start = 1, .end = 5, .step = 2},
                           {Add(ops::Slice{.axis = 1, .start = 1, .end = 6}, {x})});
  EXPECT_EQ(Simplified(g, slice), std::vector<std::string>{"Slice"});
}

TEST_F(SimplifyTest, PartsPutTogetherInOrderAreTheWhole) {
  const auto part = [&](NodeId of, std::int64_t k) {
    return Add(ops::Split{.axis = 1, .parts = 2, .index = k}, {of});
  };
  EXPECT_EQ(Simplified(g, Add(ops::Concat{.axis = 1}, {part(x, 0), part(x, 1)})),
            std::vector<std::string>{});
  // In another order, along another axis, or of different tensors they are not.
  for (const NodeId other : {Add(ops::Concat{.axis = 1}, {part(x, 1), part(x, 0)}),
                             Add(ops::Concat{.axis = 0}, {part(x, 0), part(x, 1)}),
                             Add(ops::Concat{.axis = 1}, {part(x, 0), part(y, 1)})}) {
    EXPECT_EQ(Simplified(g, other).size(), 3u);
  }
  const NodeId both = Add(ops::Concat{.axis = 1}, {x, y});
  EXPECT_EQ(Simplified(g, part(both, 1)), std::vector<std::string>{});
  const NodeId three = Add(ops::Concat{.axis = 1}, {x, y, x, y});
  EXPECT_EQ(Simplified(g, part(three, 1)).size(), 2u);
}

TEST_F(SimplifyTest, EqualNodesAreOneAndUnusedOnesGo) {
  const NodeId a = Add(ops::Exp{}, {x});
  Add(ops::Tanh{}, {x});
  EXPECT_EQ(Simplified(g, Add(ops::Add{}, {a, Add(ops::Exp{}, {x})})),
            (std::vector<std::string>{"Exp", "Add"}));
}

// Chains of movements with sharing: the same bits, never more operators, and again nothing to do.
TEST(SimplifyPropertyTest, RandomGraphsKeepTheirValues) {
  int shorter = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 rng(seed);
    const auto draw = [&](std::int64_t n) { return std::int64_t(rng() % std::uint64_t(n)); };
    Graph g;
    std::vector<NodeId> values{g.AddInput("x", graph::InputKind::kActivation, Floats({2, 3, 4})),
                               g.AddInput("y", graph::InputKind::kActivation, Floats({4, 6}))};
    for (int k = 0; k < 14; ++k) {
      const NodeId of =
          draw(3) == 0 ? values[std::size_t(draw(std::int64_t(values.size())))] : values.back();
      const graph::Extents from = graph::Concrete(g.shape(of));
      const int rank = from.size();
      const std::int64_t axis = draw(rank), n = from[int(axis)];
      ops::Transpose transpose{.perm = {}};
      for (int a = 0; a < rank; ++a) transpose.perm.insert(int(draw(a + 1)), a);
      const ops::Operator choices[] = {
          transpose,
          ops::Neg{},
          ops::Relu{},
          ops::Reshape{.shape = rank == 2
                                    ? graph::Shape{from[1], 1, from[0]}
                                    : graph::Shape{graph::ElementCount(from) / from[0], from[0]}},
          ops::Slice{.axis = axis, .start = n / 3, .end = n, .step = 1 + draw(2)},
          ops::Split{.axis = axis, .parts = n % 2 == 0 ? 2 : 1, .index = 0},
          ops::Pad{.begins = ops::Short<ops::Size>::Filled(rank, draw(2)),
                   .ends = ops::Short<ops::Size>::Filled(rank, 0)},
      };
      const ops::Operator& op = choices[draw(7)];
      const auto id = draw(8) == 0 ? g.Add(ops::Concat{.axis = axis},
                                           {*g.Add(ops::Split{.axis = axis, .parts = 1}, {of}), of})
                                   : g.Add(op, {of});
      ASSERT_TRUE(id.ok()) << id.status();
      values.push_back(*id);
    }
    g.SetOutputs({values.back(), values[7]});
    const auto simple = Simplify(g);
    ASSERT_TRUE(simple.ok()) << simple.status();
    const std::vector<Values> inputs{{{2, 3, 4}, RandomNumbers(seed, 24)},
                                     {{4, 6}, RandomNumbers(seed + 1000, 24)}};
    const auto a = test::EvaluateFast(g, inputs), b = test::EvaluateFast(*simple, inputs);
    for (std::size_t k = 0; k < a.size(); ++k) {
      EXPECT_EQ(a[k].extents, b[k].extents);
      EXPECT_EQ(a[k].data, b[k].data) << "seed " << seed;
    }
    EXPECT_LE(Operators(*simple).size(), Operators(g).size());
    shorter += Operators(*simple).size() < Operators(g).size() ? 1 : 0;
    const auto again = Simplify(*simple);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(Operators(*again), Operators(*simple));
  }
  EXPECT_GT(shorter, 150);
}

// Models with an input x0 of 4x4 and weights that the tests add.
class FoldTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string list = folder_.Write("shapes", "m 13 4x4 -> 4x4\n");
    test::RunScript("optimizer/onnx_models.py", {"--shapes", list, folder_.path()});
    auto model = Import(folder_ / "m.onnx");
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    g_ = model_.graph();
  }
  NodeId Weight(const std::string& name, const graph::Extents& extents, double value) {
    const eval::Tensor<double> tensor{
        extents, std::vector<double>(std::size_t(graph::ElementCount(extents)), value)};
    const std::string own = model_.AddWeight(name, graph::DataType::kFloat, tensor);
    return g_.AddInput(own, graph::InputKind::kWeight, Floats(extents));
  }
  NodeId Add(const ops::Operator& op, std::vector<NodeId> operands) {
    const auto id = g_.Add(op, operands);
    CHECK(id.ok());
    return *id;
  }
  FoldSummary Fold(NodeId output, const FoldOptions& options = {}) {
    g_.SetOutputs({output});
    EXPECT_TRUE(model_.SetGraph(g_).ok());
    const Model before = model_;
    const auto summary = FoldWeights(model_, options);
    EXPECT_TRUE(summary.ok()) << summary.status();
    const auto same = Compare(before, model_);
    EXPECT_TRUE(same.ok()) << same.status();
    EXPECT_LE(same->max_relative_error, 1e-6);
    return *summary;
  }
  testing::TempFolder folder_;
  Model model_;
  Graph g_;
};

TEST_F(FoldTest, WhatDependsOnWeightsOnlyIsOneWeight) {
  const NodeId a = Weight("a", {4, 4}, 0.1), b = Weight("b", {4, 4}, 0.3);
  const NodeId product = Add(ops::MatMul{}, {a, Add(ops::Transpose{}, {b})});
  const FoldSummary summary =
      Fold(Add(ops::Add{}, {g_.input_node(0), Add(ops::Sigmoid{}, {product})}));
  EXPECT_EQ(summary.folded, 3);
  EXPECT_EQ(summary.weights, 1);
  EXPECT_EQ(Operators(model_.graph()), std::vector<std::string>{"Add"});
  // One rounding to float32, of the exact value.
  const auto value = model_.WeightValue("a_folded");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->data[0], double(float(1 / (1 + std::exp(-4 * double(0.1f) * double(0.3f))))));
}

TEST_F(FoldTest, ResultsThatWouldBlowTheModelUpStay) {
  const NodeId column = Weight("c", {4, 1}, 2), row = Weight("r", {1, 4}, 3);
  const NodeId outer = Add(ops::MatMul{}, {Add(ops::Neg{}, {column}), row});
  const NodeId y = Add(ops::Mul{}, {g_.input_node(0), outer});
  const FoldSummary summary = Fold(y, {.growth = 1, .always_elements = 4});
  EXPECT_EQ(summary.left, 1);
  EXPECT_EQ(summary.weights, 1);  // The Neg below is folded still.
  EXPECT_EQ(Operators(model_.graph()), (std::vector<std::string>{"MatMul", "Mul"}));
}

TEST_F(FoldTest, SharedAndOutputWeightsAreFoldedOnce) {
  const NodeId a = Weight("a", {4, 4}, 2);
  const NodeId square = Add(ops::Mul{}, {a, a});
  const NodeId y = Add(ops::Add{}, {Add(ops::Mul{}, {g_.input_node(0), square}), square});
  const FoldSummary summary = Fold(y);
  EXPECT_EQ(summary.weights, 1);
  EXPECT_EQ(Fold(square).weights, 1);
}

TEST_F(FoldTest, NothingToFoldChangesNothing) {
  const FoldSummary summary = Fold(Add(ops::Neg{}, {g_.input_node(0)}));
  EXPECT_EQ(summary.folded, 0);
  EXPECT_EQ(summary.weights, 0);
}

class CompareTest : public FoldTest {};

TEST_F(CompareTest, AWrongModelIsFound) {
  const NodeId a = Weight("a", {4, 4}, 0.25);
  g_.SetOutputs({Add(ops::MatMul{}, {g_.input_node(0), a})});
  ASSERT_TRUE(model_.SetGraph(g_).ok());
  Model wrong = model_;
  Graph other = g_;
  const auto y = other.Add(ops::MatMul{}, {a, other.input_node(0)});
  other.SetOutputs({*y});
  ASSERT_TRUE(wrong.SetGraph(other).ok());
  const auto same = Compare(model_, wrong);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_GT(same->max_relative_error, 0.1);
  EXPECT_EQ(same->worst, "output 'y'");
}

TEST_F(CompareTest, WhatGoesIntoForeignNodesIsComparedToo) {
  const NodeId make = g_.outputs()[0];
  const auto& op = *g_.node(make).op;
  Model wrong = model_;
  const auto other = g_.Add(op, {Add(ops::Relu{}, {g_.input_node(0)})});
  g_.SetOutputs({*other});
  ASSERT_TRUE(wrong.SetGraph(g_).ok());
  const auto same = Compare(model_, wrong);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_GT(same->max_relative_error, 0.1);
  EXPECT_EQ(same->outputs_covered, 1);
}

TEST_F(CompareTest, WhatTheBudgetLeavesOutCountsAsSkipped) {
  Model other = model_;
  g_.SetOutputs({Add(ops::Relu{}, {g_.input_node(0)})});
  ASSERT_TRUE(model_.SetGraph(g_).ok());
  g_.SetOutputs({Add(ops::Relu{}, {Add(ops::Relu{}, {g_.input_node(0)})})});
  ASSERT_TRUE(other.SetGraph(g_).ok());
  const auto same = Compare(model_, other, {.budget = std::chrono::milliseconds(-1)});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->skipped, 1);
  EXPECT_EQ(same->outputs_covered, 0);
  EXPECT_EQ(same->nodes_covered, 0);
}

}  // namespace
}  // namespace tenon::optimizer
