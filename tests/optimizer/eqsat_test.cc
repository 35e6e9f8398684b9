#include "optimizer/search/eqsat.h"

#include <random>

#include "core/egraph/load.h"
#include "core/egraph/saturate.h"
#include "core/rules/canonical.h"
#include "gtest/gtest.h"
#include "optimizer/search/optimize.h"
#include "optimizer/search/space.h"
#include "tests/optimizer/egraphs.h"
#include "tests/optimizer/lecture_graphs.h"
#include "tests/optimizer/random_graph.h"
#include "tests/optimizer/rule_files.h"
#include "tests/optimizer/values.h"

namespace tenon::optimizer {
namespace {

std::unique_ptr<const Device> Open(std::string_view spec) {
  auto device = OpenDevice(spec);
  CHECK(device.ok());
  return *std::move(device);
}

SearchResult Optimize(const graph::Graph& g, const std::vector<SearchRule>& rules,
                      std::string_view device = "roofline:h100", SearchOptions options = {}) {
  options.method = SearchMethod::kEqsat;
  auto result = OptimizeGraph(g, rules, *Open(device), options);
  if (!result.ok()) std::fprintf(stderr, "%s\n", base::Message(result.status()).c_str());
  CHECK(result.ok());
  return *std::move(result);
}

void ExpectOptimal(const SearchResult& result, double cost_us) {
  EXPECT_NEAR(result.cost_after_us, cost_us, 0.05);
  ASSERT_TRUE(result.extraction.has_value());
  EXPECT_EQ(result.extraction->pieces, 1);
  EXPECT_EQ(result.extraction->optimal, 1);
  EXPECT_EQ(result.extraction->lower_bound_us, result.cost_after_us);
  EXPECT_EQ(result.extraction->saturated, 1);
  EXPECT_EQ(result.end, SearchEnd::kComplete);
  EXPECT_FALSE(result.steps.empty());
  EXPECT_NEAR(result.steps.back().cost_us, result.cost_after_us, 1e-9);
}

TEST(LectureEqsatTest, QkvBecomesOneProductAndIsProvedOptimal) {
  ExpectOptimal(Optimize(Qkv(), LectureRules()), 34.2);
  ExpectOptimal(Optimize(Qkv(), LectureRules(), "roofline:weak"), 1021.9);
}

TEST(LectureEqsatTest, LoraIsFoldedAndIsProvedOptimal) {
  ExpectOptimal(Optimize(Lora(), LectureRules()), 21.4);
  ExpectOptimal(Optimize(Lora(), LectureRules(), "roofline:weak"), 4305.0);
}

TEST(LectureEqsatTest, ResnetBlockMergesItsTwoConvolutionsOnAFastDevice) {
  ExpectOptimal(Optimize(ResnetBlock(), LectureRules()), 34.5);
  ExpectOptimal(Optimize(ResnetBlock(), LectureRules(), "roofline:weak"), 3986.4);
}

TEST(LectureEqsatTest, SmallVariantsKeepTheirValues) {
  const auto rules = LectureRules();
  const graph::Graph graphs[] = {ResnetBlock({.n = 2, .c = 3, .h = 5}),
                                 Qkv({.rows = 3, .width = 8}),
                                 Lora({.rows = 6, .width = 8, .rank = 2})};
  for (const graph::Graph& g : graphs) {
    const SearchResult result = Optimize(g, rules);
    EXPECT_LT(result.cost_after_us, result.cost_before_us);
    EXPECT_LT(Difference(g, result.graph), 1e-12);
  }
}

TEST(EqsatPropertyTest, NeverDearerAlwaysEqualAndTheSameTwice) {
  const auto rules = LectureRules();
  int cheaper = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const graph::Graph g = RandomGraph(random, 4 + int(seed % 12));
    const char* device = seed % 2 == 0 ? "roofline:h100" : "roofline:weak";
    const SearchResult result = Optimize(g, rules, device);
    EXPECT_LE(result.cost_after_us, result.cost_before_us);
    EXPECT_NEAR(result.cost_after_us,
                CostOfGraph(*Open(device), result.graph, result.graph.outputs()).us, 1e-9);
    EXPECT_LT(Difference(g, result.graph, seed), 1e-9);
    ASSERT_TRUE(result.extraction.has_value());
    EXPECT_LE(result.extraction->lower_bound_us, result.cost_after_us);
    const bool changed = result.cost_after_us < result.cost_before_us;
    cheaper += changed ? 1 : 0;
    EXPECT_TRUE(!changed || !result.steps.empty());
    double last = result.cost_before_us;
    for (const SearchStep& step : result.steps) {  // What a derivation says never gets dearer.
      EXPECT_LE(step.cost_us, last * (1 + 1e-9));
      last = step.cost_us;
    }
    const SearchResult again = Optimize(g, rules, device);
    EXPECT_EQ(rules::InterfaceBytes(result.graph, result.graph.outputs()),
              rules::InterfaceBytes(again.graph, again.graph.outputs()));
    EXPECT_EQ(result.steps.size(), again.steps.size());
  }
  EXPECT_GE(cheaper, 8);
}

// The e-graphs of random graphs, small enough to try every choice.
TEST(SpacePropertyTest, TheCheapestChoiceIsTheCheapestGraph) {
  const auto device = Open("roofline:h100");
  const EqsatRules rules(LectureRules(), /*fast_math=*/false);
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const graph::Graph g = RandomGraph(random, 2 + int(seed % 4));
    egraph::EGraph e(rules.vocabulary(), {.commutative = true});
    const auto roots = egraph::AddGraph(e, g, g.outputs());
    egraph::Saturator(rules.set()).Run(e, {.iterations = 2, .nodes = 60, .weights = false});
    const double given = CostOfGraph(*device, g, g.outputs()).us;
    const Space space(e, g, roots, *device, 10 * given);
    if (extract::ChoiceCount(space.problem()) > 20'000) continue;
    const auto least = extract::BruteForce(space.problem());
    ASSERT_TRUE(least.has_value());
    const auto found = extract::Extract(space.problem(), {});
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->verdict, extract::Verdict::kOptimal);
    EXPECT_NEAR(found->cost, *least, 1e-6 * *least);
    const graph::Graph best = space.Build(found->choice);
    EXPECT_NEAR(CostOfGraph(*device, best, best.outputs()).us, *least, 1e-6 * given);
    EXPECT_LE(*least, given * (1 + 1e-6));
    EXPECT_LT(Difference(g, best, seed), 1e-9);
    ++compared;
  }
  EXPECT_GE(compared, 30);
}

// A device that measures is asked for no more prices when the time is up; what the e-graph began
// with is still there.
TEST(SpaceTest, WhatIsLateHasNoPriceAndThePieceHasOne) {
  const auto device = Open("roofline:h100");
  const EqsatRules rules(LectureRules(), /*fast_math=*/false);
  const graph::Graph g = ResnetBlock();
  egraph::EGraph e(rules.vocabulary(), {.commutative = true});
  const auto roots = egraph::AddGraph(e, g, g.outputs());
  egraph::Saturator(rules.set()).Run(e, {.weights = false});
  const double given = CostOfGraph(*device, g, g.outputs()).us;
  const Space all(e, g, roots, *device, 10 * given);
  EXPECT_TRUE(all.complete());
  const Space late(e, g, roots, *device, 10 * given, [] { return true; });
  EXPECT_FALSE(late.complete());
  EXPECT_LT(late.problem().nodes.size(), all.problem().nodes.size());
  const auto cheapest = extract::Extract(all.problem(), {});
  const auto left = extract::Extract(late.problem(), {});
  ASSERT_TRUE(cheapest.ok() && left.ok());
  EXPECT_LT(cheapest->cost, 0.5 * given);
  EXPECT_NEAR(left->cost, given, 1e-6 * given);
}

// Rules with several outputs alone would fill any e-graph: what they merged can be merged again.
TEST(MergesTest, SiblingsAreMergedInBoundedlyManyWays) {
  std::vector<SearchRule> all = LectureRules();
  std::erase_if(all, [](const SearchRule& r) { return r.rule->name != "merge_matmuls"; });
  ASSERT_EQ(all.size(), 1u);
  Builder b;
  const auto x = b.Activation("x", {16, 64});
  std::vector<graph::NodeId> outputs;
  for (int k = 0; k < 5; ++k) {
    outputs.push_back(b.Add(ops::MatMul{}, {x, b.Weight("w" + std::to_string(k), {64, 64})}));
  }
  const graph::Graph g = b.Done(outputs);
  const SearchResult result = Optimize(g, all);
  ASSERT_TRUE(result.extraction.has_value());
  EXPECT_EQ(result.extraction->saturated, 1);
  EXPECT_LE(result.extraction->nodes, 1'000);
  int priced = 0;
  const auto device = Open("roofline:h100");
  for (const auto id : result.graph.Reachable(result.graph.outputs())) {
    priced += device->CostOf(result.graph, id) > 0 ? 1 : 0;
  }
  EXPECT_EQ(priced, 1);  // All five are one product.
  EXPECT_LT(Difference(g, result.graph), 1e-12);
}

// Merging the two products would need the second operand of the second one, which is made of the
// first: the merged product would depend on itself.
TEST(MergesTest, ACycleIsNeverTaken) {
  Builder b;
  const auto x = b.Activation("x", {64, 64});
  const auto first = b.Add(ops::MatMul{}, {x, b.Weight("w", {64, 64})});
  const graph::Graph g = b.Done({first, b.Add(ops::MatMul{}, {x, first})});
  const SearchResult result = Optimize(g, LectureRules());
  EXPECT_LE(result.cost_after_us, result.cost_before_us);
  EXPECT_LT(Difference(g, result.graph), 1e-12);
}

TEST(EqsatBudgetTest, IterationsAreCountedAndKept) {
  SearchOptions options;
  for (const std::int64_t limit : {0, 1, 2, 100}) {
    options.step_limit = limit;
    const SearchResult result = Optimize(Qkv(), LectureRules(), "roofline:h100", options);
    EXPECT_LE(result.steps_spent, limit);
    EXPECT_LE(result.cost_after_us, result.cost_before_us);
    if (limit < 2) {
      EXPECT_EQ(result.end, SearchEnd::kStepLimit);
    }
  }
}

TEST(EqsatBudgetTest, TimeEndsItWithTheBestSoFar) {
  SearchOptions options;
  options.time_limit = std::chrono::milliseconds(200);
  std::int64_t calls = 0;  // A clock that advances by a millisecond whenever it is read.
  options.now = [&] { return SteadyTime(std::chrono::milliseconds(++calls)); };
  const graph::Graph g = Blocks(12);
  const SearchResult result = Optimize(g, LectureRules(), "roofline:h100", options);
  EXPECT_EQ(result.end, SearchEnd::kTimeLimit);
  EXPECT_LE(result.cost_after_us, result.cost_before_us);
  EXPECT_EQ(result.graph.outputs().size(), 1u);
}

TEST(EqsatBudgetTest, AnInterruptReturnsTheBestSoFar) {
  std::stop_source source;
  SearchOptions options;
  options.method = SearchMethod::kEqsat;
  options.stop = source.get_token();
  const auto rules = LectureRules();
  const auto result = OptimizeGraph(Blocks(4), rules, *Open("roofline:h100"), options,
                                    [&](const SearchProgress& progress) {
                                      if (progress.cost_us < progress.cost_before_us) {
                                        source.request_stop();
                                      }
                                    });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->end, SearchEnd::kInterrupted);
  EXPECT_LT(result->cost_after_us, result->cost_before_us);
  source = {};
  source.request_stop();
  options.stop = source.get_token();
  const auto nothing = OptimizeGraph(Blocks(4), rules, *Open("roofline:h100"), options);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->end, SearchEnd::kInterrupted);
  EXPECT_EQ(nothing->cost_after_us, nothing->cost_before_us);
}

TEST(EqsatLargeModelTest, ManyBlocksAreAllMergedAndEqualOnesSaturatedOnce) {
  const SearchResult result = Optimize(Blocks(12), LectureRules());
  EXPECT_NEAR(result.cost_before_us, 12 * 85.56, 0.1);
  EXPECT_NEAR(result.cost_after_us, 12 * 34.49, 0.1);
  EXPECT_GT(result.windows_remembered, result.windows / 2);
}

// Each small piece is merged as it can be; that nothing is better is known when the whole model is
// one e-graph.
TEST(EqsatLargeModelTest, TheWholeModelIsProvedInTheEndThoughItTookPieces) {
  const graph::Graph g = Blocks(7);  // 49 operators: more than are one e-graph at first.
  const SearchResult result = Optimize(g, LectureRules());
  EXPECT_NEAR(result.cost_after_us, 7 * 34.49, 0.1);
  EXPECT_GT(result.windows, 1);
  ASSERT_TRUE(result.extraction.has_value());
  EXPECT_EQ(result.extraction->pieces, 1);
  EXPECT_EQ(result.extraction->optimal, 1);
  EXPECT_EQ(result.extraction->saturated, 1);
  EXPECT_EQ(result.end, SearchEnd::kComplete);
  double last = result.cost_before_us;
  for (const SearchStep& step : result.steps) {  // Of the way that was kept alone.
    EXPECT_LE(step.cost_us, last * (1 + 1e-9));
    last = step.cost_us;
  }
  EXPECT_NEAR(last, result.cost_after_us, 1e-9);
}

// Beginning anew is no reason to report a cost that the search was below already.
TEST(EqsatLargeModelTest, ProgressNeverRises) {
  SearchOptions options;
  options.method = SearchMethod::kEqsat;
  double last = 1e300;
  int reports = 0;
  const auto result = OptimizeGraph(Blocks(7), LectureRules(), *Open("roofline:h100"), options,
                                    [&](const SearchProgress& progress) {
                                      EXPECT_LE(progress.cost_us, last);
                                      last = progress.cost_us;
                                      ++reports;
                                    });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->cost_after_us, last);
  EXPECT_GT(reports, 3);
}

TEST(EqsatOpaqueTest, OpaqueNodesStayAndWhatIsAroundThemIsOptimized) {
  Builder b;
  const auto x = b.Activation("x", {8, 16, 10, 10});
  const auto conv = b.Add(ops::Relu{}, {b.Add(Conv3x3(), {x, b.Weight("w", {16, 16, 3, 3})})});
  const auto foreign = b.Add(ops::Opaque{.key = 3, .output = 0, .shape = {8, 16, 10, 10}}, {conv});
  const auto last =
      b.Add(ops::Relu{}, {b.Add(Conv3x3(), {foreign, b.Weight("v", {16, 16, 3, 3})})});
  const SearchResult result = Optimize(b.Done({last}), LectureRules());
  EXPECT_EQ(result.after.opaque, 1);
  EXPECT_EQ(result.before.nodes, 5);
  EXPECT_EQ(result.after.nodes, 3);
}

}  // namespace
}  // namespace tenon::optimizer
