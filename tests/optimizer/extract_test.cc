#include "optimizer/extract/extract.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/check.h"
#include "optimizer/extract/greedy.h"
#include "optimizer/extract/landmark.h"
#include "optimizer/extract/must_have.h"
#include "optimizer/extract/program.h"
#include "optimizer/extract/reduce.h"
#include "optimizer/extract/separate.h"
#include "optimizer/extract/solver.h"
#include "tests/optimizer/egraphs.h"

namespace tenon::optimizer::extract {
namespace {

using testing::HasSubstr;

Result MustExtract(const Problem& problem, const Options& options = {}) {
  auto result = Extract(problem, options);
  EXPECT_TRUE(result.ok()) << base::Message(result.status());
  return result.ok() ? *result : Result{};
}

// The answer agrees with itself and with the problem.
void ExpectSound(const Problem& problem, const Result& r) {
  if (r.verdict == Verdict::kInfeasible) {
    for (const NodeId n : r.choice) EXPECT_EQ(n, kNoNode);
    return;
  }
  const auto cost = Cost(problem, r.choice);
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(*cost, r.cost);
  EXPECT_LE(r.lower_bound, r.cost);
  EXPECT_EQ(Needed(problem, r.choice), r.choice);
  if (r.verdict == Verdict::kOptimal) {
    EXPECT_EQ(r.Gap(), 0);
  }
}

TEST(ExtractTest, SmallEGraphsCostWhatTryingEveryChoiceSays) {
  int feasible = 0, infeasible = 0, cyclic = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Problem p = RandomProblem(seed, 7);
    const auto least = BruteForce(p);
    const Result r = MustExtract(p);
    ExpectSound(p, r);
    if (!least) {
      EXPECT_EQ(r.verdict, Verdict::kInfeasible) << "seed " << seed;
      ++infeasible;
      continue;
    }
    ++feasible;
    cyclic += CountCycles(p).classes > 0;
    EXPECT_EQ(r.verdict, Verdict::kOptimal) << "seed " << seed;
    EXPECT_NEAR(r.cost, *least, 1e-6) << "seed " << seed;
  }
  EXPECT_GT(feasible, 800);
  EXPECT_GT(infeasible, 50);
  EXPECT_GT(cyclic, 300);
}

// Reduce, must-have sets, landmarks and orders, each against every choice.
TEST(ExtractTest, WhatIsTakenOutIsNotNeeded) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const Problem p = RandomProblem(seed, 7);
    const auto least = BruteForce(p);
    if (!least) continue;
    Instance g(p);
    Reduce(g, *least * (1 + 1e-6) + 1e-6);
    Problem reduced = p;
    reduced.nodes.clear();
    for (NodeId n = 0; n < g.num_nodes(); ++n) {
      if (g.alive(n)) reduced.nodes.push_back(p.nodes[std::size_t(n)]);
    }
    const auto still = BruteForce(reduced);
    ASSERT_TRUE(still.has_value()) << "seed " << seed;
    EXPECT_EQ(*still, *least) << "seed " << seed;
    EXPECT_LE(PathBound(g), *least);
  }
}

TEST(ExtractTest, MustHavesAndLandmarksCannotBeAvoided) {
  int landmarks = 0, must_haves = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Problem p = RandomProblem(seed, 6);
    Instance g(p);
    if (!KillUseless(g)) continue;
    const MustHave must(g);
    LandmarkFinder finder(g);
    std::vector<NodeId> order;
    for (NodeId n = g.num_nodes(); n-- > 0;) {
      if (g.alive(n)) order.push_back(n);
    }
    const auto without = [&](const auto& dropped) {
      Problem rest = p;
      rest.nodes.clear();
      for (NodeId n = 0; n < g.num_nodes(); ++n) {
        if (g.alive(n) && !dropped(n)) rest.nodes.push_back(p.nodes[std::size_t(n)]);
      }
      return rest;
    };
    for (const ClassId root : p.roots) {
      const std::vector<NodeId> cut = finder.Find(root, order);
      ASSERT_FALSE(cut.empty());
      ++landmarks;
      Problem rest =
          without([&](NodeId n) { return std::find(cut.begin(), cut.end(), n) != cut.end(); });
      rest.roots = {root};
      EXPECT_FALSE(BruteForce(rest).has_value()) << "seed " << seed;
      for (ClassId e = 0; e < p.num_classes; ++e) {
        rest = without([&](NodeId n) { return g.eclass(n) == e; });
        rest.roots = {root};
        if (must.Needs(root, e)) {
          EXPECT_FALSE(BruteForce(rest).has_value()) << "seed " << seed << " class " << e;
          ++must_haves;
        }
      }
    }
  }
  EXPECT_GT(landmarks, 200);
  EXPECT_GT(must_haves, 400);
}

TEST(ExtractTest, AnOrderKeepsTheChoiceAndLeavesNoCycle) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const Problem p = RandomProblem(seed, 9);
    Instance g(p);
    if (!KillUseless(g)) continue;
    std::vector<double> costs;
    for (const Node& n : p.nodes) costs.push_back(n.cost);
    for (const Choice& whole : {GreedyTree(g, costs), GreedyDag(g, costs)}) {
      ASSERT_TRUE(Cost(p, whole).has_value()) << "seed " << seed;
      const Choice choice = Needed(p, whole);
      const Instance ordered = Ordered(g, choice);
      EXPECT_TRUE(IsAcyclic(ordered)) << "seed " << seed;
      for (const NodeId n : choice) {
        EXPECT_TRUE(n == kNoNode || ordered.alive(n)) << "seed " << seed;
      }
    }
  }
}

// Two products of one operand that one product and two slices replace: neither pays alone.
Problem SharedProduct() {
  return {.num_classes = 5,
          .nodes = {{0, 1, {1, 2}},  // 0: the sum
                    {1, 10, {4}},    // 1: a product, or a slice of both
                    {1, 1, {3}},
                    {2, 10, {4}},  // 2: the other
                    {2, 1, {3}},
                    {3, 13, {4}},  // 3: both in one
                    {4, 0, {}}},   // 4: the operand
          .roots = {0}};
}

TEST(ExtractTest, WhatIsSharedCountsOnce) {
  const Result r = MustExtract(SharedProduct());
  EXPECT_EQ(r.verdict, Verdict::kOptimal);
  EXPECT_EQ(r.cost, 16);
  EXPECT_EQ(r.choice, (Choice{0, 2, 4, 5, 6}));
}

TEST(ExtractTest, ACycleThatLooksCheapIsNotTaken) {
  // 1 and 2 are each other's views for nothing; computing either is dear.
  const Problem p{.num_classes = 3,
                  .nodes = {{0, 1, {1}}, {1, 0, {2}}, {2, 0, {1}}, {1, 50, {}}, {2, 70, {}}},
                  .roots = {0}};
  const Result r = MustExtract(p);
  EXPECT_EQ(r.verdict, Verdict::kOptimal);
  EXPECT_EQ(r.cost, 51);
  EXPECT_EQ(r.choice, (Choice{0, 3, kNoNode}));
}

TEST(ExtractTest, WhatCannotBeComputedIsInfeasible) {
  const Problem only_cycles{.num_classes = 2, .nodes = {{0, 1, {1}}, {1, 1, {0}}}, .roots = {0}};
  EXPECT_EQ(MustExtract(only_cycles).verdict, Verdict::kInfeasible);
  const Problem itself{.num_classes = 1, .nodes = {{0, 1, {0}}}, .roots = {0}};
  EXPECT_EQ(MustExtract(itself).verdict, Verdict::kInfeasible);
  const Problem empty_class{.num_classes = 2, .nodes = {{0, 1, {1}}}, .roots = {0}};
  const Result r = MustExtract(empty_class);
  EXPECT_EQ(r.verdict, Verdict::kInfeasible);
  EXPECT_EQ(r.choice, (Choice{kNoNode, kNoNode}));
  const Problem second_root{.num_classes = 2, .nodes = {{0, 1, {}}}, .roots = {0, 1}};
  EXPECT_EQ(MustExtract(second_root).verdict, Verdict::kInfeasible);
}

TEST(ExtractTest, NothingAndZeroAreAnswers) {
  const Result none = MustExtract(Problem{});
  EXPECT_EQ(none.verdict, Verdict::kOptimal);
  EXPECT_EQ(none.cost, 0);
  Problem zero = SharedProduct();
  for (Node& n : zero.nodes) n.cost = 0;
  const Result r = MustExtract(zero);
  EXPECT_EQ(r.verdict, Verdict::kOptimal);
  EXPECT_EQ(r.cost, 0);
  EXPECT_EQ(r.Gap(), 0);
  ExpectSound(zero, r);
}

TEST(ExtractTest, UnitsDoNotMatter) {
  for (const double unit : {1e-9, 1e-3, 1e9}) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      Problem p = RandomProblem(seed, 7);
      for (Node& n : p.nodes) n.cost *= unit;
      const auto least = BruteForce(p);
      const Result r = MustExtract(p);
      EXPECT_NEAR(r.cost, least.value_or(0), 1e-6 * unit) << "seed " << seed << " unit " << unit;
    }
  }
}

TEST(ExtractTest, BadNumbersAreNamed) {
  const auto message = [](const Problem& p) {
    const auto result = Extract(p, {});
    return result.ok() ? "" : base::Message(result.status());
  };
  const Problem good{.num_classes = 1, .nodes = {{0, 1, {}}, {0, 2, {}}}, .roots = {0}};
  Problem bad = good;
  bad.nodes[1].cost = -1;
  EXPECT_THAT(message(bad), HasSubstr("node 1: its cost is -1"));
  bad.nodes[1].cost = std::nan("");
  EXPECT_THAT(message(bad), HasSubstr("node 1: its cost is nan"));
  bad = good;
  bad.nodes[0].children = {7};
  EXPECT_THAT(message(bad), HasSubstr("node 0: child: no class 7"));
  bad = good;
  bad.nodes[1].eclass = -2;
  EXPECT_THAT(message(bad), HasSubstr("node 1: no class -2"));
  bad = good;
  bad.roots = {1};
  EXPECT_THAT(message(bad), HasSubstr("root: no class 1"));
  bad = good;
  bad.num_classes = -1;
  EXPECT_THAT(message(bad), HasSubstr("out of range"));
}

TEST(ExtractTest, WrongChoicesHaveNoCost) {
  const Problem p = SharedProduct();
  EXPECT_EQ(Cost(p, {0, 1, 3, kNoNode, 6}), 21);
  EXPECT_EQ(Cost(p, {0, 1, 3, kNoNode, kNoNode}), std::nullopt) << "a class without a choice";
  EXPECT_EQ(Cost(p, {0, 3, 3, kNoNode, 6}), std::nullopt) << "another class's node";
  EXPECT_EQ(Cost(p, {0, 1, 99, kNoNode, 6}), std::nullopt) << "no node";
  EXPECT_EQ(Cost(p, {0, 1}), std::nullopt) << "too short";
  const Problem cycle{
      .num_classes = 2, .nodes = {{0, 1, {1}}, {1, 1, {0}}, {1, 9, {}}}, .roots = {0}};
  EXPECT_EQ(Cost(cycle, {0, 1}), std::nullopt);
  EXPECT_EQ(Cost(cycle, {0, 2}), 10);
}

// A chain with two ways for each link, the dearer one first.
Problem Chain(ClassId length) {
  Problem p{.num_classes = length + 1, .nodes = {}, .roots = {0}};
  for (ClassId c = 0; c < length; ++c) {
    p.nodes.push_back({c, 3, {c + 1}});
    p.nodes.push_back({c, 2, {c + 1}});
    if (c > 0) p.nodes.push_back({c, 0, {c - 1}});  // And a way back.
  }
  p.nodes.push_back({length, 1, {}});
  return p;
}

TEST(ExtractTest, DeepChainsNeedNoStack) {
  constexpr ClassId kLength = 300'000;
  const Problem p = Chain(kLength);
  const Result r = MustExtract(p);
  EXPECT_EQ(r.verdict, Verdict::kOptimal);
  EXPECT_EQ(r.cost, 2.0 * kLength + 1);
  ExpectSound(p, r);
}

TEST(ExtractTest, BeyondTheLimitOfClassesThereIsStillABound) {
  Problem p = SharedProduct();
  Options options;
  options.limits.classes = 3;
  const Result r = MustExtract(p, options);
  ExpectSound(p, r);
  EXPECT_EQ(r.cost, 16);  // By a joint switch.
  EXPECT_EQ(r.verdict, Verdict::kFeasible);
  EXPECT_EQ(r.lower_bound, 11);
  EXPECT_FALSE(r.interrupted);
}

Synthetic Small(std::uint64_t seed) {
  return {.classes = 400, .nodes = 1600, .variants = 0.1, .merged = 0.2, .seed = seed};
}

TEST(ExtractTest, TensorLikeEGraphsAreProvedAndRepeat) {
  int better_than_greedy = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Problem p = MakeSynthetic(Small(seed));
    EXPECT_GT(CountCycles(p).classes, 20);
    std::vector<Progress> said;
    Options options;
    options.progress = [&](const Progress& step) { said.push_back(step); };
    const Result r = MustExtract(p, options);
    EXPECT_EQ(r.verdict, Verdict::kOptimal) << "seed " << seed;
    ExpectSound(p, r);
    ASSERT_GE(said.size(), 2u);
    for (std::size_t i = 1; i < said.size(); ++i) {
      EXPECT_LE(said[i].cost, said[i - 1].cost);
      EXPECT_GE(said[i].lower_bound, said[i - 1].lower_bound);
    }
    better_than_greedy += said.back().cost < said.front().cost;
    const Result again = MustExtract(p);
    EXPECT_EQ(again.choice, r.choice) << "seed " << seed;
    EXPECT_EQ(again.found_by, r.found_by);
  }
  EXPECT_GT(better_than_greedy, 0);
}

// The optimum by integer programs alone: no incumbent, no reduction, no cuts but those against the
// cycles of their solutions, which `cyclic` counts. The roots can be computed.
double PlainOptimum(const Problem& p, int& cyclic) {
  Instance g(p);
  CHECK(KillUseless(g));
  Program program(g, 1, p.roots);
  const Stop never({}, std::nullopt);
  for (;;) {
    CHECK(program.Solve(never) == Program::Outcome::kOptimal);
    const Program::Integer found = program.SolveInteger(1e6, 100'000, never);
    CHECK(found.finished && found.found);
    Choice choice(std::size_t(p.num_classes), kNoNode);
    for (const NodeId n : found.taken) choice[std::size_t(g.eclass(n))] = n;
    if (const auto cost = Cost(p, choice)) {
      EXPECT_NEAR(found.bound, *cost, 1e-6);
      return *cost;
    }
    LandmarkFinder finder(g);
    const std::vector<Cut> cuts = CycleLandmarks(g, finder, found.taken);
    CHECK(!cuts.empty());
    program.Add(cuts);
    ++cyclic;
  }
}

TEST(ExtractTest, IntegerProgramsWithoutCyclesFindTheOptimum) {
  int solved = 0, cyclic = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Problem p = RandomProblem(seed, 7);
    const auto least = BruteForce(p);
    if (!least) continue;
    EXPECT_NEAR(PlainOptimum(p, cyclic), *least, 1e-6) << "seed " << seed;
    ++solved;
  }
  EXPECT_GT(solved, 100);
  EXPECT_GT(cyclic, 5);
}

// Where brute force does not reach: all that makes it fast must not make it wrong.
TEST(ExtractTest, LargerEGraphsCostWhatIntegerProgramsAloneSay) {
  int solved = 0, cyclic = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Problem p = RandomProblem(seed, 60);
    const Result r = MustExtract(p);
    if (r.verdict == Verdict::kInfeasible) continue;
    EXPECT_EQ(r.verdict, Verdict::kOptimal) << "seed " << seed;
    EXPECT_NEAR(r.cost, PlainOptimum(p, cyclic), 1e-6) << "seed " << seed;
    ++solved;
  }
  EXPECT_GT(solved, 100);
  EXPECT_GT(cyclic, 5);
}

TEST(ExtractTest, NothingCheaperThanTheCutoffIsABound) {
  const Problem p = SharedProduct();
  const Instance g(p);
  Program program(g, 1, p.roots);
  const Stop never({}, std::nullopt);
  ASSERT_EQ(program.Solve(never), Program::Outcome::kOptimal);
  const Program::Integer found = program.SolveInteger(16, 1000, never);
  EXPECT_TRUE(found.finished);
  EXPECT_FALSE(found.found);
  EXPECT_EQ(found.bound, 16);
  std::stop_source source;
  source.request_stop();
  const Program::Integer stopped =
      program.SolveInteger(100, 1000, Stop(source.get_token(), std::nullopt));
  EXPECT_FALSE(stopped.finished || stopped.found);
  EXPECT_EQ(program.Solve(Stop(source.get_token(), std::nullopt)), Program::Outcome::kStopped);
}

TEST(ExtractTest, AStopBeforeTheStartStillGivesAGreedyChoice) {
  const Problem p = MakeSynthetic(Small(4));
  std::stop_source source;
  source.request_stop();
  const Result r = MustExtract(p, {.stop = source.get_token()});
  ExpectSound(p, r);
  EXPECT_EQ(r.verdict, Verdict::kFeasible);
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.found_by, Stage::kGreedy);
  EXPECT_GT(r.lower_bound, 0);
}

TEST(ExtractTest, AStopInTheMiddleOrADeadlineEndsItSoon) {
  // Minutes of work when nobody ends it.
  const Problem p =
      MakeSynthetic({.classes = 2000, .nodes = 10'000, .variants = 0.4, .merged = 0.15});
  std::stop_source source;
  std::jthread asks;
  Options options{.stop = source.get_token()};
  options.progress = [&](const Progress& step) {
    if (step.stage == Stage::kLocalSearch) {
      asks = std::jthread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        source.request_stop();
      });
    }
  };
  auto start = std::chrono::steady_clock::now();
  Result r = MustExtract(p, options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_TRUE(r.interrupted);
  ExpectSound(p, r);

  Options timed;
  start = std::chrono::steady_clock::now();
  timed.limits.deadline = start + std::chrono::seconds(2);
  r = MustExtract(p, timed);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_TRUE(r.interrupted);
  ExpectSound(p, r);
}

// CBC's own main program takes SIGINT away from its caller unless told not to.
TEST(ExtractTest, TheSolverLeavesSignalsAlone) {
  struct sigaction ours {};
  ours.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGINT, &ours, &before), 0);
  const Problem p = MakeSynthetic(Small(5));
  Instance g(p);
  ASSERT_TRUE(KillUseless(g));
  Program program(g, 1, p.roots);
  const Stop never({}, std::nullopt);
  ASSERT_EQ(program.Solve(never), Program::Outcome::kOptimal);
  program.SolveInteger(1e6, 10, never);
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGINT, &before, &after), 0);
  EXPECT_EQ(after.sa_handler, ours.sa_handler);
}

TEST(EGraphFileTest, WhatIsWrittenIsReadAgain) {
  const Problem p = MakeSynthetic(Small(6));
  const auto read = ParseProblem(PrintProblem(p));
  ASSERT_TRUE(read.ok()) << base::Message(read.status());
  EXPECT_EQ(read->nodes.size(), p.nodes.size());
  const Result a = MustExtract(p), b = MustExtract(*read);
  EXPECT_NEAR(a.cost, b.cost, 1e-6);
}

TEST(EGraphFileTest, BadFilesAreNamed) {
  const auto message = [](const std::string& text) {
    const auto p = ParseProblem(text);
    return p.ok() ? "" : base::Message(p.status());
  };
  EXPECT_THAT(message("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message(R"({"nodes": {"a": {"cost": 1}}, "root_eclasses": []})"),
              HasSubstr("node a: needs eclass"));
  EXPECT_THAT(message(R"({"nodes": {"a": {"eclass": "0", "cost": 1, "children": ["b"]}},
                          "root_eclasses": []})"),
              HasSubstr("node a: child: no node \"b\""));
  EXPECT_THAT(message(R"({"nodes": {}, "root_eclasses": ["7"]})"), HasSubstr("no class \"7\""));
  EXPECT_THAT(base::Message(ReadProblem("no/such.json.gz").status()), HasSubstr("no/such"));
}

}  // namespace
}  // namespace tenon::optimizer::extract
