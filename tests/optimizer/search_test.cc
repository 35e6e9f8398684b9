#include "optimizer/search/optimize.h"

#include <random>

#include "core/rules/canonical.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optimizer/search/built_in.h"
#include "tests/optimizer/lecture_graphs.h"
#include "tests/optimizer/random_graph.h"
#include "tests/optimizer/rule_files.h"
#include "tests/optimizer/values.h"

namespace tenon::optimizer {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<const Device> Open(std::string_view spec) {
  auto device = OpenDevice(spec);
  CHECK(device.ok());
  return *std::move(device);
}

SearchResult Optimize(const graph::Graph& g, const std::vector<SearchRule>& rules,
                      std::string_view device = "roofline:h100",
                      const SearchOptions& options = {}) {
  auto result = OptimizeGraph(g, rules, *Open(device), options);
  CHECK(result.ok());
  return *std::move(result);
}

std::vector<std::string> RulesUsed(const SearchResult& result,
                                   const std::vector<SearchRule>& rules) {
  std::vector<std::string> out;
  for (const SearchStep& step : result.steps) {
    out.push_back(rules[std::size_t(step.rule)].rule->name);
  }
  return out;
}

std::vector<SearchRule> WithBuiltIn(std::vector<SearchRule> rules) {
  for (SearchRule& r : BuiltInRules()) rules.push_back(std::move(r));
  return rules;
}

// A short search: the tests that use it ask for something else than the best result.
SearchOptions Short() {
  SearchOptions options;
  options.patience = 200;
  return options;
}

TEST(LectureTest, ResnetBlockMergesItsTwoConvolutionsOnAFastDevice) {
  const auto rules = LectureRules();
  const SearchResult result = Optimize(ResnetBlock(), rules);
  EXPECT_NEAR(result.cost_before_us, 85.6, 0.05);
  EXPECT_NEAR(result.cost_after_us, 34.5, 0.05);
  EXPECT_THAT(RulesUsed(result, rules), Contains("enlarge_1x1"));
  EXPECT_THAT(RulesUsed(result, rules), Contains("merge_convs"));
}

TEST(LectureTest, ResnetBlockWithoutResidualFusionStillMerges) {
  const auto rules = Without(LectureRules(), {"conv_residual", "conv_residual_relu"});
  const SearchResult result = Optimize(ResnetBlock(), rules);
  EXPECT_NEAR(result.cost_after_us, 57.8, 0.05);
  EXPECT_THAT(RulesUsed(result, rules), Contains("enlarge_1x1"));
}

// Merged convolutions are read through slices, and the activations wait behind them.
TEST(LectureTest, BuiltInRulesTakeActivationsThroughSlices) {
  const auto rules = WithBuiltIn(Without(LectureRules(), {"relu_slice"}));
  const SearchResult result = Optimize(ResnetBlock(), rules);
  EXPECT_NEAR(result.cost_after_us, 34.5, 0.05);
  EXPECT_THAT(RulesUsed(result, rules), Contains("Relu_of_slice_4_1"));
}

// What a join of Relu([a, b]) = [Relu(a), Relu(b)] gives works as well: the Concat of the two
// slices is the merged convolution itself.
TEST(LectureTest, PartsThatAreJoinedAgainAreTheWhole) {
  auto rules = Without(LectureRules(), {"relu_slice"});
  for (SearchRule& r :
       RulesFrom("rule relus given a[n,c,h,w] b[n,d,h,w] source Relu(a), Relu(b)"
                 " target Slice(Relu(Concat(a, b, axis=1)), axis=1, start=0, end=c),"
                 " Slice(Relu(Concat(a, b, axis=1)), axis=1, start=c, end=c+d)",
                 "join")) {
    rules.push_back(r);
  }
  const SearchResult result = Optimize(ResnetBlock(), rules);
  EXPECT_NEAR(result.cost_after_us, 34.5, 0.05);
  EXPECT_THAT(RulesUsed(result, rules), Contains("relus"));
}

TEST(LectureTest, BiasesOfMergedProductsAreMergedToo) {
  const auto rules = WithBuiltIn(LectureRules());
  Builder b;
  const auto x = b.Activation("x", {64, 512});
  std::vector<graph::NodeId> outputs;
  for (const std::string n : {"q", "k", "v"}) {
    const auto product = b.Add(ops::MatMul{}, {x, b.Weight("w" + n, {512, 512})});
    outputs.push_back(b.Add(ops::Add{}, {product, b.Weight("b" + n, {512})}));
  }
  const graph::Graph g = b.Done(outputs);
  const SearchResult result = Optimize(g, rules, "roofline:h100", Short());
  int priced = 0;
  const auto device = Open("roofline:h100");
  for (const auto id : result.graph.Reachable(result.graph.outputs())) {
    priced += device->CostOf(result.graph, id) > 0 ? 1 : 0;
  }
  EXPECT_EQ(priced, 2);  // One product, one sum.
}

TEST(BuiltInTest, NormalizationGoesIntoTheKernelAndTheBias) {
  const auto rules = BuiltInRules();
  for (const bool bias : {false, true}) {
    for (const double epsilon : {1e-5, double(1e-5f), double(1e-3f)}) {
      Builder b;
      const auto x = b.Activation("x", {2, 4, 5, 5}), w = b.Weight("w", {6, 2, 3, 3});
      ops::Conv conv = Conv3x3();
      conv.group = 2;
      const auto y = bias ? b.Add(conv, {x, w, b.Weight("c", {6})}) : b.Add(conv, {x, w});
      const auto positive =
          b.Add(ops::Add{}, {b.Add(ops::Mul{}, {b.Weight("v", {6}), b.Weight("v", {6})}),
                             b.Add(ops::Fill{.shape = {6}, .value = 1}, {})});
      const auto normal = b.Add(ops::BatchNormalization{.epsilon = epsilon},
                                {y, b.Weight("s", {6}), b.Weight("o", {6}), b.Weight("m", {6}),
                                 b.Add(ops::Exp{}, {positive})});
      const graph::Graph g = b.Done({b.Add(ops::Relu{}, {normal})});
      const SearchResult result = Optimize(g, rules);
      EXPECT_EQ(result.before.nodes, 3);
      EXPECT_EQ(result.after.nodes, 1);  // Conv with bias and activation.
      EXPECT_LT(Difference(g, result.graph), 1e-9);
    }
  }
}

TEST(BuiltInTest, BiasedAndGroupedConvolutionsAreFusedAndMerged) {
  const auto rules = BuiltInRules();
  Builder b;
  const auto x = b.Activation("x", {2, 4, 6, 6});
  const auto left =
      b.Add(ops::Relu{}, {b.Add(Conv3x3(), {x, b.Weight("w", {4, 4, 3, 3}), b.Weight("a", {4})})});
  const auto right = b.Add(
      ops::Relu{}, {b.Add(ops::Conv{}, {x, b.Weight("v", {4, 4, 1, 1}), b.Weight("c", {4})})});
  ops::Conv grouped = Conv3x3();
  grouped.group = 4;
  const auto deep = b.Add(grouped, {left, b.Weight("u", {4, 1, 3, 3})});
  const graph::Graph g = b.Done({b.Add(ops::Relu{}, {b.Add(ops::Add{}, {deep, right})})});
  const SearchResult result = Optimize(g, rules);
  const auto used = RulesUsed(result, rules);
  EXPECT_THAT(used, Contains("enlarge_1x1_bias"));
  EXPECT_THAT(used, Contains("merge_convs_bias"));
  EXPECT_THAT(used, Contains("conv_residual_groups"));
  EXPECT_EQ(result.after.nodes, 4);  // Two convolutions and two views of the first one.
  EXPECT_LT(Difference(g, result.graph), 1e-9);
}

TEST(LectureTest, GreedySearchFusesAndGoesNoFurther) {
  SearchOptions greedy;
  greedy.alpha = 1;
  const auto fusions = Without(LectureRules(), {"conv_residual", "conv_residual_relu"});
  EXPECT_NEAR(Optimize(ResnetBlock(), fusions, "roofline:h100", greedy).cost_after_us, 62.2, 0.05);
  EXPECT_NEAR(Optimize(ResnetBlock(), LectureRules(), "roofline:h100", greedy).cost_after_us, 38.9,
              0.05);
}

TEST(LectureTest, ResnetBlockKeepsItsSmallConvolutionOnAWeakDevice) {
  const auto rules = LectureRules();
  const SearchResult result = Optimize(ResnetBlock(), rules, "roofline:weak");
  EXPECT_NEAR(result.cost_before_us, 5182.4, 0.05);
  EXPECT_NEAR(result.cost_after_us, 3986.4, 0.05);
  EXPECT_THAT(RulesUsed(result, rules), Not(Contains("enlarge_1x1")));
}

TEST(LectureTest, QkvBecomesOneProduct) {
  const auto rules = LectureRules();
  EXPECT_NEAR(Optimize(Qkv(), rules, "roofline:h100", Short()).cost_after_us, 34.2, 0.05);
  EXPECT_NEAR(Optimize(Qkv(), rules, "roofline:weak", Short()).cost_after_us, 1021.9, 0.05);
}

TEST(LectureTest, LoraIsFoldedIntoTheWeight) {
  const auto rules = LectureRules();
  EXPECT_NEAR(Optimize(Lora(), rules, "roofline:h100", Short()).cost_after_us, 21.4, 0.05);
  // On the way the graph costs 1.9 times as much, which is beyond alpha for one step.
  EXPECT_NEAR(Optimize(Lora(), rules, "roofline:weak", Short()).cost_after_us, 4305.0, 0.05);
}

TEST(LectureTest, SmallVariantsKeepTheirValues) {
  const auto rules = LectureRules();
  const graph::Graph graphs[] = {ResnetBlock({.n = 2, .c = 3, .h = 5}),
                                 Qkv({.rows = 3, .width = 8}),
                                 Lora({.rows = 6, .width = 8, .rank = 2})};
  for (const graph::Graph& g : graphs) {
    const SearchResult result = Optimize(g, rules, "roofline:h100", Short());
    EXPECT_LT(result.cost_after_us, result.cost_before_us);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      EXPECT_LT(Difference(g, result.graph, seed), 1e-12);
    }
  }
}

TEST(ViewTest, ViewsOfViewsAreMergedWithoutARule) {
  Builder b;
  const auto x = b.Activation("x", {4, 12});
  const auto parts = [&](std::int64_t from, std::int64_t to) {
    return b.Add(ops::Slice{.axis = 1, .start = from, .end = to}, {x});
  };
  const auto split = b.Add(ops::Split{.axis = 1, .parts = 3, .index = 2}, {x});
  const auto whole = b.Add(ops::Concat{.axis = 1}, {parts(0, 3), parts(3, 8), split});
  const auto inner = b.Add(ops::Slice{.axis = 1, .start = 1, .end = 2}, {parts(5, 9)});
  const graph::Graph g = b.Done({b.Add(ops::Tanh{}, {whole}), b.Add(ops::Tanh{}, {inner})});
  const SearchResult result = Optimize(g, {});
  EXPECT_EQ(result.after.nodes, 3);  // Tanh(x), and Tanh of one Slice.
  EXPECT_FALSE(result.steps.empty());
  for (const SearchStep& step : result.steps) EXPECT_EQ(step.rule, -1);
  EXPECT_EQ(Difference(g, result.graph), 0);
}

TEST(SearchPropertyTest, ResultsAreNeverDearerAndKeepTheirValues) {
  const auto rules = LectureRules();
  int cheaper = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const graph::Graph g = RandomGraph(random, 4 + int(seed % 12));
    const char* device = seed % 2 == 0 ? "roofline:h100" : "roofline:weak";
    const SearchResult result = Optimize(g, rules, device, Short());
    EXPECT_LE(result.cost_after_us, result.cost_before_us);
    EXPECT_NEAR(result.cost_after_us,
                CostOfGraph(*Open(device), result.graph, result.graph.outputs()).us, 1e-9);
    EXPECT_LE(result.lower_bound_us, result.cost_after_us);
    EXPECT_LT(Difference(g, result.graph, seed), 1e-9);
    cheaper += result.cost_after_us < result.cost_before_us ? 1 : 0;
  }
  EXPECT_GE(cheaper, 8);
}

TEST(SearchPropertyTest, TwoRunsGiveTheSameGraphAndDerivation) {
  const auto rules = LectureRules();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    const graph::Graph g = RandomGraph(random, 10);
    const SearchResult a = Optimize(g, rules, "roofline:h100", Short());
    const SearchResult b = Optimize(g, rules, "roofline:h100", Short());
    EXPECT_EQ(rules::InterfaceBytes(a.graph, a.graph.outputs()),
              rules::InterfaceBytes(b.graph, b.graph.outputs()));
    EXPECT_EQ(RulesUsed(a, rules), RulesUsed(b, rules));
    EXPECT_EQ(a.graphs_explored, b.graphs_explored);
  }
}

TEST(SearchBudgetTest, StepsAreCountedAndKept) {
  const auto rules = LectureRules();
  SearchOptions options;
  for (const std::int64_t limit : {0, 1, 10, 200}) {
    options.step_limit = limit;
    const SearchResult result = Optimize(Qkv(), rules, "roofline:h100", options);
    EXPECT_LE(result.steps_spent, limit);
    EXPECT_LE(result.cost_after_us, result.cost_before_us);
    EXPECT_EQ(result.end, SearchEnd::kStepLimit);
  }
}

TEST(SearchBudgetTest, TimeEndsTheSearchWithTheBestSoFar) {
  const auto rules = LectureRules();
  SearchOptions options;
  options.patience = options.step_limit;
  options.time_limit = std::chrono::seconds(1);
  std::int64_t calls = 0;  // A clock that advances by a millisecond whenever it is read.
  options.now = [&] { return SteadyTime(std::chrono::milliseconds(++calls)); };
  const SearchResult result = Optimize(Qkv(), rules, "roofline:h100", options);
  EXPECT_EQ(result.end, SearchEnd::kTimeLimit);
  EXPECT_LE(result.steps_spent, 1000);
  EXPECT_NEAR(result.cost_after_us, 34.2, 0.05);
}

TEST(SearchBudgetTest, AnInterruptReturnsTheBestSoFar) {
  std::stop_source source;
  SearchOptions options;
  options.stop = source.get_token();
  options.patience = options.step_limit;
  int calls = 0;
  const auto result = OptimizeGraph(Qkv(), LectureRules(), *Open("roofline:h100"), options,
                                    [&](const SearchProgress& progress) {
                                      ++calls;
                                      EXPECT_LE(progress.cost_us, progress.cost_before_us);
                                      if (progress.cost_us < 38) source.request_stop();
                                    });
  ASSERT_TRUE(result.ok());
  EXPECT_GT(calls, 0);
  EXPECT_EQ(result->end, SearchEnd::kInterrupted);
  EXPECT_NEAR(result->cost_after_us, 34.2, 0.05);
}

TEST(SearchBudgetTest, ImpossibleOptionsAreRefused) {
  const auto refused = [](const SearchOptions& options) {
    return OptimizeGraph(Qkv(), LectureRules(), *Open("roofline:h100"), options).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused({.alpha = 0.9}));
  EXPECT_TRUE(refused({.alpha = NAN}));
  EXPECT_TRUE(refused({.step_limit = -1}));
  EXPECT_TRUE(refused({.time_limit = std::chrono::milliseconds(-1)}));
}

TEST(FloatClassTest, DomainRulesNeedFastMath) {
  auto rules = RulesFrom(
      "rule exp_neg\n given a[m]\n source Reciprocal(Exp(a))\n"
      " target Exp(Neg(a))\n expect proved\n"
      "rule recip\n given a[m]\n source Reciprocal(Reciprocal(a))\n target a\n",
      "test");
  auto domain = *rules[1].rule;
  domain.float_class = rules::FloatClass::kDomain;
  rules[1].rule = std::make_shared<const rules::Rule>(domain);
  Builder b;
  const auto x = b.Activation("x", {1000});
  const graph::Graph g = b.Done({b.Add(ops::Reciprocal{}, {b.Add(ops::Reciprocal{}, {x})})});
  const SearchResult careful = Optimize(g, rules);
  EXPECT_EQ(careful.cost_after_us, careful.cost_before_us);
  EXPECT_EQ(careful.rules_refused, 1);
  SearchOptions fast;
  fast.fast_math = true;
  const SearchResult result = Optimize(g, rules, "roofline:h100", fast);
  EXPECT_EQ(result.cost_after_us, 0);
  EXPECT_EQ(result.rules_refused, 0);
}

TEST(FloatClassTest, IntegersAndMixedTypesAreLeftAlone) {
  const auto rules = LectureRules();
  for (const graph::DataType type : {graph::DataType::kInt32, graph::DataType::kBool}) {
    Builder b;
    graph::TensorType t = Floats({16, 16});
    t.dtype = type;
    const auto x = b.g.AddInput("x", graph::InputKind::kActivation, t);
    const auto y = b.Add(ops::Transpose{}, {b.Add(ops::Transpose{}, {x})});
    const SearchResult result = Optimize(b.Done({y}), rules);
    EXPECT_EQ(result.steps.size(), 0u);
    EXPECT_EQ(result.after.nodes, 2);
  }
}

// Merging the two products would need the second operand of the second one, which is made of the
// first: the merged product would depend on itself.
TEST(MultiOutputTest, ARuleThatWouldCloseACycleIsNotApplied) {
  const auto all = LectureRules();
  const auto rules = Without(all, {"transpose_matmul", "matmul_by_transposes", "transpose_twice",
                                   "matmul_associative", "matmul_distributes", "concat_matmul"});
  Builder b;
  const auto x = b.Activation("x", {64, 64});
  const auto first = b.Add(ops::MatMul{}, {x, b.Weight("w", {64, 64})});
  const auto second = b.Add(ops::MatMul{}, {x, first});
  const graph::Graph g = b.Done({first, second});
  const SearchResult result = Optimize(g, rules);
  EXPECT_EQ(result.steps.size(), 0u);
  EXPECT_EQ(result.after.nodes, 2);
  EXPECT_LT(Difference(g, result.graph), 1e-12);
}

TEST(OpaqueTest, OpaqueNodesStayAndWhatIsAroundThemIsOptimized) {
  const auto rules = LectureRules();
  Builder b;
  const auto x = b.Activation("x", {8, 16, 10, 10});
  const auto conv = b.Add(ops::Relu{}, {b.Add(Conv3x3(), {x, b.Weight("w", {16, 16, 3, 3})})});
  const auto foreign = b.Add(ops::Opaque{.key = 3, .output = 0, .shape = {8, 16, 10, 10}}, {conv});
  const auto last =
      b.Add(ops::Relu{}, {b.Add(Conv3x3(), {foreign, b.Weight("v", {16, 16, 3, 3})})});
  const SearchResult result = Optimize(b.Done({last}), rules);
  EXPECT_EQ(result.before.opaque, 1);
  EXPECT_EQ(result.after.opaque, 1);
  EXPECT_EQ(result.before.nodes, 5);
  EXPECT_EQ(result.after.nodes, 3);
}

// 500 operators in a row: convolutions with their activations, and pairs of transposes.
TEST(LargeModelTest, AChainOf500NodesTakesSeconds) {
  const auto rules = LectureRules();
  Builder b;
  auto x = b.Activation("x", {1, 8, 8, 8});
  for (int k = 0; k < 250; ++k) {
    const auto w = b.Weight("w" + std::to_string(k), {8, 8, 3, 3});
    x = b.Add(ops::Relu{}, {b.Add(Conv3x3(), {x, w})});
  }
  const graph::Graph g = b.Done({x});
  std::int64_t steps = 0;
  const SearchResult result = Optimize(g, rules);
  steps = result.steps_spent;
  EXPECT_EQ(result.before.nodes, 500);
  EXPECT_EQ(result.after.nodes, 250);
  // Equal pieces are searched once, so the work does not grow with the number of layers.
  EXPECT_LT(steps, 20'000);
  EXPECT_GT(result.windows_remembered, result.windows / 2);
  EXPECT_LT(Difference(g, result.graph), 1e-9);
}

TEST(LargeModelTest, ManyBlocksAreAllMerged) {
  const auto rules = LectureRules();
  const SearchResult result = Optimize(Blocks(12), rules);
  EXPECT_NEAR(result.cost_before_us, 12 * 85.56, 0.1);
  EXPECT_NEAR(result.cost_after_us, 12 * 34.49, 0.1);
}

}  // namespace
}  // namespace tenon::optimizer
