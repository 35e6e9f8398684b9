// Graphs: hash-consing, inference over symbols and numbers, copies and instances.
#include "core/graph/graph.h"

#include <gtest/gtest.h>

#include "core/rules/text.h"

namespace tenon::graph {
namespace {

TensorType Matrix(std::int64_t rows, std::int64_t columns) {
  return {DataType::kFloat, ToShape({rows, columns})};
}

TEST(GraphTest, EqualNodesAreOne) {
  Graph g;
  const NodeId a = g.AddInput("a", InputKind::kActivation, Matrix(2, 3));
  const NodeId b = g.AddInput("b", InputKind::kWeight, Matrix(3, 4));
  const NodeId ab = *g.Add(ops::MatMul{}, {a, b});
  EXPECT_EQ(ab, *g.Add(ops::MatMul{}, {a, b}));
  EXPECT_NE(*g.Add(ops::Concat{0}, {a, a}), *g.Add(ops::Concat{1}, {a, a}));
  EXPECT_EQ(Concrete(g.shape(ab)), (Extents{2, 4}));
  EXPECT_FALSE(g.node(ab).weights_only);
  EXPECT_TRUE(g.node(*g.Add(ops::Relu{}, {b})).weights_only);
  EXPECT_TRUE(g.node(*g.Add(ops::Eye{3}, {})).weights_only);
}

TEST(GraphTest, MisfitsAreErrorsThatNameTheOperator) {
  Graph g;
  const NodeId a = g.AddInput("a", InputKind::kActivation, Matrix(2, 3));
  const NodeId i = g.AddInput("i", InputKind::kActivation, {DataType::kInt64, ToShape({2, 3})});
  const auto message = [](const auto& result) { return base::Message(result.status()); };
  EXPECT_EQ(message(g.Add(ops::MatMul{}, {a, a})), "MatMul: inner extents differ");
  EXPECT_EQ(message(g.Add(ops::MatMul{}, {a})), "MatMul takes 2 operands, not 1");
  EXPECT_EQ(message(g.Add(ops::Add{}, {a, i})), "Add: operands of types float32 and int64");
  EXPECT_EQ(message(g.Add(ops::Transpose{{0, 0}}, {a})),
            "Transpose: perm is not a permutation of the axes");
  EXPECT_EQ(message(g.Add(ops::Slice{1, 2, 2}, {a})), "Slice: the slice is empty");
  EXPECT_EQ(message(g.Add(ops::Reshape{{INT64_MAX, 3}}, {a})), "Reshape: a size overflows");
}

TEST(GraphTest, SymbolicAndConcreteInferenceAgree) {
  const auto rule = rules::ParseRule(
      "rule r attr s >= 1, p >= 0, d >= 1, h >= 1 given x[N,C,H,W] a[m,n] weight w[F,C,R,S] source "
      "Conv(x, w, strides=[s,s], pads=[p,p,p,p], dilations=[d,d]), Slice(a, axis=1, end=h), "
      "MaxPool(x, kernel_shape=[3,2], strides=[2,s], pads=[1,1,1,0]), Concat(a, a, axis=1) "
      "target x, a, x, a");
  ASSERT_TRUE(rule.ok()) << rule.status();
  const Graph& g = rule->graph;
  const auto requirements = g.Requirements(rule->source);
  int instances = 0;
  std::vector<std::int64_t> v(g.symbols().size(), 1);
  for (unsigned code = 0; code < 200000 && instances < 300; ++code) {
    unsigned digits = code * 2654435761u;
    for (std::size_t k = 1; k < v.size(); ++k) {
      if (g.symbols().kind(base::Symbol(k)) == base::SymbolKind::kDiv) continue;
      v[k] = 1 + digits % 5;
      digits /= 5;
    }
    bool fits = true;
    for (const auto& c : requirements) fits = fits && *base::Holds(c, g.symbols(), v);
    const auto instance = Instantiate(g, rule->source, v);
    ASSERT_EQ(instance.ok(), fits) << instance.status();
    if (!fits) continue;
    ++instances;
    for (std::size_t k = 0; k < rule->source.size(); ++k) {
      const Shape& symbolic = g.shape(rule->source[k]);
      const Extents concrete = Concrete(instance->shape(instance->outputs()[k]));
      for (int a = 0; a < symbolic.size(); ++a) {
        EXPECT_EQ(*g.symbols().Eval(symbolic[a], v), concrete[a]);
      }
    }
  }
  EXPECT_EQ(instances, 300);
}

TEST(GraphTest, ACopyIsTheSameTerm) {
  Graph g;
  const NodeId a = g.AddInput("a", InputKind::kActivation, Matrix(2, 3));
  const NodeId b = g.AddInput("b", InputKind::kActivation, Matrix(3, 2));
  const NodeId root = *g.Add(ops::Relu{}, {*g.Add(ops::MatMul{}, {a, b})});
  Graph h;
  const NodeId y = h.AddInput("b", InputKind::kActivation, Matrix(3, 2));
  const NodeId x = h.AddInput("a", InputKind::kActivation, Matrix(2, 3));
  const NodeId roots[] = {root};
  const NodeId inputs[] = {x, y};
  const auto copy = CopyInto(g, roots, h, inputs);
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(rules::PrintTerm(h, (*copy)[0]), "Relu(MatMul(a, b))");
  EXPECT_EQ(h.OperatorCount(*copy), 2);
}

}  // namespace
}  // namespace tenon::graph
