#include "optimizer/search/window.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optimizer/search/narrow.h"
#include "tests/optimizer/lecture_graphs.h"
#include "tests/optimizer/values.h"

namespace tenon::optimizer {
namespace {

using graph::NodeId;
using ::testing::ElementsAre;

// A random DAG of square matrices; about a tenth of the nodes are opaque when `opaque`.
graph::Graph RandomDag(std::uint64_t seed, int nodes, bool opaque) {
  std::mt19937_64 random(seed);
  Builder b;
  std::vector<NodeId> made{b.Activation("x", {3, 3}), b.Weight("w", {3, 3})};
  for (int k = 0; k < nodes; ++k) {
    const auto any = [&] {
      const std::size_t back = std::min<std::size_t>(made.size(), 6);
      return made[made.size() - 1 - random() % back];
    };
    const auto kind = random() % 10;
    if (opaque && kind == 9) {
      made.push_back(b.Add(ops::Opaque{.key = k, .output = 0, .shape = {3, 3}}, {any()}));
    } else if (kind < 4) {
      made.push_back(b.Add(ops::Add{}, {any(), any()}));
    } else if (kind < 7) {
      made.push_back(b.Add(ops::MatMul{}, {any(), any()}));
    } else {
      made.push_back(b.Add(ops::Tanh{}, {any()}));
    }
  }
  return b.Done({made.back(), made[made.size() / 2]});
}

// Whether a path leaves the set and comes back, by walking all paths.
bool IsConvex(const graph::Graph& g, const std::vector<NodeId>& nodes) {
  const auto inside = [&](NodeId id) { return std::ranges::count(nodes, id) != 0; };
  std::vector<char> above(g.size(), 0);  // Some node of the set is below, through outside nodes.
  for (NodeId id = 0; id < NodeId(g.size()); ++id) {
    for (const NodeId o : g.node(id).operands) {
      const bool left = above[std::size_t(o)] != 0;
      if (inside(id) && left) return false;
      if (!inside(id) && (left || inside(o))) above[std::size_t(id)] = 1;
    }
  }
  return true;
}

TEST(WindowTest, WindowsAreConvexAndOfEligibleNodes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const graph::Graph g = RandomDag(seed, 60, true);
    const WindowFinder finder(g);
    for (const NodeId id : finder.eligible()) {
      for (const Growth growth : {Growth::kSiblings, Growth::kNeighbours}) {
        const auto nodes = finder.Grow(id, 12, growth);
        EXPECT_LE(nodes.size(), 12u);
        EXPECT_TRUE(std::ranges::count(nodes, id) == 1);
        EXPECT_TRUE(IsConvex(g, nodes)) << "seed " << seed << " node " << id;
        for (const NodeId n : nodes) {
          EXPECT_TRUE(std::ranges::binary_search(finder.eligible(), n));
        }
      }
    }
  }
}

TEST(CutNarrowlyTest, PiecesAreConvexAndTogetherAllThatIsEligible) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const graph::Graph g = RandomDag(seed, 80, true);
    const WindowFinder finder(g);
    std::vector<NodeId> all, last;
    for (const auto& piece : CutNarrowly(g, finder, 10)) {
      EXPECT_LE(piece.size(), 10u);
      EXPECT_TRUE(std::ranges::is_sorted(piece));
      EXPECT_TRUE(IsConvex(g, piece)) << "seed " << seed;
      all.insert(all.end(), piece.begin(), piece.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, finder.eligible());
  }
}

// Between the blocks one tensor crosses; inside of them two or three.
TEST(CutNarrowlyTest, CutsWhereOneTensorCrossesAndElsewhereWhenAsked) {
  const graph::Graph g = Blocks(6);
  const WindowFinder finder(g);
  const auto pieces = CutNarrowly(g, finder, 9);
  std::vector<NodeId> last;
  ASSERT_EQ(pieces.size(), 6u);
  for (const auto& piece : pieces) {
    EXPECT_EQ(piece.size(), 7u);
    EXPECT_EQ(finder.Extract(piece).outputs.size(), 1u);
    last.push_back(piece.back());
  }
  for (const auto& piece : CutNarrowly(g, finder, 9, last)) {
    const bool end = piece.back() == g.outputs()[0];
    EXPECT_TRUE(end || std::ranges::count(last, piece.back()) == 0);
  }
}

TEST(WindowTest, PuttingAWindowBackChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const graph::Graph g = Cleaned(RandomDag(seed, 30, false));
    const WindowFinder finder(g);
    for (const NodeId id : finder.eligible()) {
      const Window window = finder.Extract(finder.Grow(id, 8, Growth::kNeighbours));
      std::vector<NodeId> moved;
      const graph::Graph back = Splice(g, window, window.graph, &moved);
      EXPECT_EQ(back.OperatorCount(back.outputs()), g.OperatorCount(g.outputs()));
      EXPECT_EQ(Difference(g, back), 0);
      for (const NodeId node : window.outputs) EXPECT_NE(moved[std::size_t(node)], graph::kNoNode);
    }
  }
}

TEST(WindowTest, AnInputMayStandForAnOutput) {
  Builder b;
  const auto x = b.Activation("x", {2, 2});
  const auto twice = b.Add(ops::Transpose{}, {b.Add(ops::Transpose{}, {x})});
  const graph::Graph g = b.Done({b.Add(ops::Tanh{}, {twice}), twice});
  const WindowFinder finder(g);
  const Window window = finder.Extract({NodeId(1), NodeId(2)});
  graph::Graph nothing;
  const auto in = nothing.AddInput("", graph::InputKind::kActivation, *g.node(x).type);
  nothing.SetOutputs({in});
  const graph::Graph result = Splice(g, window, nothing);
  EXPECT_EQ(result.OperatorCount(result.outputs()), 1);
  EXPECT_EQ(Difference(g, result), 0);
}

TEST(WindowTest, WeightsStayWeights) {
  Builder b;
  const auto x = b.Activation("x", {2, 2}), v = b.Weight("v", {2, 2}), w = b.Weight("w", {2, 2});
  const auto sum = b.Add(ops::Add{}, {v, w});
  const auto product = b.Add(ops::MatMul{}, {x, sum});
  const graph::Graph g = b.Done({product});
  const WindowFinder finder(g);
  EXPECT_THAT(finder.eligible(), ElementsAre(product));
  const Window window = finder.Extract({product});
  ASSERT_EQ(window.inputs.size(), 2u);
  EXPECT_EQ(window.graph.input(0).kind, graph::InputKind::kActivation);
  EXPECT_EQ(window.graph.input(1).kind, graph::InputKind::kWeight);
}

TEST(WindowTest, SiblingsComeFirst) {
  Builder b;
  const auto x = b.Activation("x", {4, 4});
  const auto deep = b.Add(ops::Tanh{}, {b.Add(ops::Tanh{}, {x})});
  const auto p = b.Add(ops::MatMul{}, {deep, b.Weight("u", {4, 4})});
  const auto after = b.Add(ops::Tanh{}, {p});
  const auto q = b.Add(ops::MatMul{}, {deep, b.Weight("v", {4, 4})});
  const graph::Graph g = b.Done({after, q});
  EXPECT_THAT(WindowFinder(g).Grow(p, 2, Growth::kSiblings), ElementsAre(p, q));
}

}  // namespace
}  // namespace tenon::optimizer
