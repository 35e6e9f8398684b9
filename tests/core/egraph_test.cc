// The e-graph alone, saturated with rules, and compared with values.
#include "core/egraph/egraph.h"

#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "core/egraph/graph_proof.h"
#include "core/egraph/load.h"
#include "core/egraph/saturate.h"
#include "core/rules/text.h"
#include "tests/support/small_universe.h"

namespace tenon::egraph {
namespace {

using graph::DataType;
using Stop = SaturationResult::Stop;

std::shared_ptr<const rules::Rule> Read(std::string_view text) {
  auto rule = rules::ParseRule(text);
  EXPECT_TRUE(rule.ok()) << rule.status() << "\n" << text;
  return std::make_shared<const rules::Rule>(*std::move(rule));
}

// The rules of tests/core/matrix.rules, without those that only exchange operands if so asked.
void AddMatrixRules(RuleSet& rules, bool commutative) {
  std::ifstream in(TENON_SOURCE_DIR "/tests/core/matrix.rules");
  std::stringstream text;
  text << in.rdbuf();
  const auto parsed = rules::ParseRules(text.str(), "matrix.rules");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 28u);
  for (const rules::ParsedRule& p : *parsed) {
    ASSERT_TRUE(p.rule.ok()) << p.name << ": " << p.rule.status();
    if (commutative && (p.name == "add_commutes" || p.name == "mul_commutes")) continue;
    rules.Add(std::make_shared<const rules::Rule>(*p.rule));
  }
}

struct Bench {
  Vocabulary words;
  EGraph g{words};
  ClassId Input(int number, graph::Extents extents, bool weights_only = false) {
    return g.AddInput(number, words.InternType(DataType::kFloat, extents), weights_only);
  }
  ClassId Add(const ops::Operator& op, std::initializer_list<ClassId> operands) {
    return g.Add(words.InternOperator(op), std::vector<ClassId>(operands));
  }
};

TEST(EGraphTest, EqualNodesAreOne) {
  Bench b;
  const ClassId x = b.Input(0, {2, 3}), y = b.Input(1, {3, 2});
  EXPECT_EQ(b.Input(0, {2, 3}), x);
  const ClassId xy = b.Add(ops::MatMul{}, {x, y});
  EXPECT_EQ(b.Add(ops::MatMul{}, {x, y}), xy);
  EXPECT_NE(b.Add(ops::MatMul{}, {y, x}), xy);
  EXPECT_EQ(b.words.extents(b.g.type(xy)), (graph::Extents{2, 2}));
  EXPECT_EQ(b.g.node_count(), 4u);
  EXPECT_EQ(b.Add(ops::MatMul{}, {x, x}), kNoClass);  // It does not fit, and leaves nothing behind.
  EXPECT_EQ(b.g.node_count(), 4u);
}

TEST(EGraphTest, EqualOperandsMakeEqualResults) {
  Bench b;
  const ClassId x = b.Input(0, {2}), y = b.Input(1, {2}), z = b.Input(2, {2});
  ClassId fx = x, fy = y;
  for (int k = 0; k < 5; ++k) {
    fx = b.Add(ops::Relu{}, {b.Add(ops::Add{}, {fx, z})});
    fy = b.Add(ops::Relu{}, {b.Add(ops::Add{}, {fy, z})});
  }
  EXPECT_FALSE(b.g.Equal(fx, fy));
  const std::size_t before = b.g.node_count();
  EXPECT_TRUE(b.g.Union(x, y));
  EXPECT_FALSE(b.g.Union(y, x));
  b.g.Rebuild();
  EXPECT_TRUE(b.g.Equal(fx, fy));
  EXPECT_EQ(b.g.node_count(), before - 10);
  EXPECT_EQ(b.g.journal().size(), 11u);
  EXPECT_EQ(b.g.journal()[0].reason.rule, Reason::kGiven);
  EXPECT_EQ(b.g.journal()[1].reason.rule, Reason::kCongruence);
}

TEST(EGraphTest, WhatIsKnownAheadOfTimeSpreadsUpwards) {
  Bench b;
  const ClassId x = b.Input(0, {2}), w = b.Input(1, {2}, true);
  const ClassId up = b.Add(ops::Relu{}, {b.Add(ops::Neg{}, {x})});
  EXPECT_FALSE(b.g.weights_only(up));
  EXPECT_TRUE(b.g.weights_only(b.Add(ops::Relu{}, {w})));
  EXPECT_FALSE(b.g.weights_only(b.Add(ops::Add{}, {w, x})));
  b.g.Union(x, w);
  b.g.Rebuild();
  EXPECT_TRUE(b.g.weights_only(b.g.Find(up)));
}

TEST(EGraphTest, CommutativeOperandsAreEqualOnlyIfAskedFor) {
  for (bool commutative : {false, true}) {
    Vocabulary words;
    EGraph g(words, {.commutative = commutative});
    const TypeId type = words.InternType(DataType::kFloat, {2, 2});
    const ClassId x = g.AddInput(0, type), y = g.AddInput(1, type);
    const OpId add = words.InternOperator(ops::Add{}), mat = words.InternOperator(ops::MatMul{});
    EXPECT_EQ(g.Add(add, std::vector{x, y}) == g.Add(add, std::vector{y, x}), commutative);
    EXPECT_NE(g.Add(mat, std::vector{x, y}), g.Add(mat, std::vector{y, x}));
  }
}

TEST(EGraphTest, AClearedGraphIsLikeNew) {
  Vocabulary words;
  RuleSet rules(words);
  AddMatrixRules(rules, true);
  Saturator saturator(rules);
  const test::SmallUniverse u = test::MatrixUniverse(1);
  TermLoader loader(words, u.terms);
  EGraph used(words, {.commutative = true});
  for (graph::TermId id = 0; id < graph::TermId(u.terms.size()); ++id) {
    EGraph fresh(words, {.commutative = true});
    used.Clear();
    EXPECT_EQ(loader.Add(used, id), loader.Add(fresh, id));
    const SaturationLimits limits{.iterations = 3, .nodes = 300};
    saturator.Run(used, limits);
    saturator.Run(fresh, limits);
    EXPECT_EQ(used.node_count(), fresh.node_count());
    EXPECT_EQ(used.journal().size(), fresh.journal().size());
  }
}

TEST(VocabularyTest, TypesComeFromTheOperators) {
  Vocabulary words;
  const TypeId a = words.InternType(DataType::kFloat, {2, 3});
  const TypeId b = words.InternType(DataType::kFloat16, {2, 3});
  const OpId add = words.InternOperator(ops::Add{});
  EXPECT_EQ(words.Infer(add, std::vector{a, a}), a);
  EXPECT_EQ(words.Infer(add, std::vector{a, b}), kNoType);
  EXPECT_EQ(words.Infer(add, std::vector{a}), kNoType);
  const OpId eye = words.InternOperator(ops::Eye{4}, DataType::kFloat16);
  EXPECT_NE(eye, words.InternOperator(ops::Eye{4}, DataType::kFloat));
  EXPECT_EQ(words.skeleton(eye), words.skeleton(words.InternOperator(ops::Eye{5})));
  EXPECT_EQ(words.dtype(words.Infer(eye, {})), DataType::kFloat16);
  for (int k = 1; k < 2000; ++k) {  // Through several sizes of the table.
    const OpId slice = words.InternOperator(ops::Slice{1, 0, k});
    EXPECT_EQ(words.Infer(slice, std::vector{a}) != kNoType, k <= 3);
    EXPECT_EQ(words.Infer(slice, std::vector{a}) != kNoType, k <= 3);
  }
}

// ---------------------------------------------------------------------------------------
// saturation

TEST(SaturationTest, StopsAsItSays) {
  Vocabulary words;
  RuleSet rules(words);
  rules.Add(Read("rule grow given a[m] source Relu(a) target Relu(Relu(Neg(Neg(a))))"));
  Saturator s(rules);
  const auto run = [&](SaturationLimits limits) {
    EGraph g(words);
    g.Add(words.InternOperator(ops::Relu{}),
          std::vector{g.AddInput(0, words.InternType(DataType::kFloat, {2}))});
    const SaturationResult r = s.Run(g, limits);
    EXPECT_LE(g.node_count(), limits.nodes);
    return r;
  };
  EXPECT_EQ(run({.iterations = 4}).stop, Stop::kIterations);
  EXPECT_EQ(run({.iterations = 4}).iterations, 4);
  EXPECT_EQ(run({.iterations = 1000, .nodes = 50}).stop, Stop::kNodes);
  EXPECT_EQ(run({.create = false}).stop, Stop::kSaturated);
  EXPECT_EQ(run({.create = false}).iterations, 1);
}

TEST(SaturationTest, ReachesItsGoalAndSaysByWhichRule) {
  Vocabulary words;
  RuleSet rules(words);
  rules.Add(Read("rule twice given a[m,n] source Transpose(Transpose(a)) target a"));
  const auto product =
      rules.Add(Read("rule product given a[m,k] b[k,n] source Transpose(MatMul(a, b)) "
                     "target MatMul(Transpose(b), Transpose(a)) both"));
  const auto pair = Read(
      "rule r given a[m,k] b[k,n] source Transpose(MatMul(Transpose(b), Transpose(a))) "
      "target MatMul(a, b)");
  const std::vector<std::int64_t> sizes(pair->graph.symbols().size(), 3);
  const auto instance =
      graph::Instantiate(pair->graph, std::vector{pair->source[0], pair->target[0]}, sizes);
  ASSERT_TRUE(instance.ok());
  EGraph g(words);
  const auto roots = AddGraph(g, *instance, instance->outputs());
  Saturator s(rules);
  const SaturationResult r = s.Run(g, {}, Goal{roots[0], roots[1]});
  EXPECT_EQ(r.stop, Stop::kGoal);
  EXPECT_TRUE(g.Equal(roots[0], roots[1]));
  EXPECT_TRUE(std::any_of(g.journal().begin(), g.journal().end(),
                          [&](const UnionRecord& u) { return u.reason.rule == product; }));
  EXPECT_GT(s.uses()[std::size_t(product)], 0u);
}

TEST(SaturationTest, RulesWithSeveralOutputsUniteEachOfThem) {
  Vocabulary words;
  RuleSet rules(words);
  rules.Add(
      Read("rule merge given a[m,k] b[k,n] c[k,p] source MatMul(a, b), MatMul(a, c) "
           "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=0, end=n), "
           "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=n, end=n+p)"));
  EGraph g(words);
  const auto input = [&](int k, graph::Extents e) {
    return g.AddInput(k, words.InternType(DataType::kFloat, e));
  };
  const ClassId a = input(0, {2, 3}), b = input(1, {3, 4}), c = input(2, {3, 5});
  const OpId mat = words.InternOperator(ops::MatMul{});
  const ClassId ab = g.Add(mat, std::vector{a, b}), ac = g.Add(mat, std::vector{a, c});
  Saturator s(rules);
  s.Run(g, {.iterations = 1});
  const ClassId bc = g.Find(words.InternOperator(ops::Concat{1}), std::vector{b, c});
  ASSERT_NE(bc, kNoClass);
  const ClassId abc = g.Find(mat, std::vector{a, bc});
  ASSERT_NE(abc, kNoClass);
  EXPECT_EQ(g.Find(words.InternOperator(ops::Slice{1, 0, 4}), std::vector{abc}), g.Find(ab));
  EXPECT_EQ(g.Find(words.InternOperator(ops::Slice{1, 4, 9}), std::vector{abc}), g.Find(ac));
}

TEST(SaturationTest, ConstantsTakeTheTypeOfTheMatch) {
  Vocabulary words;
  RuleSet rules(words);
  rules.Add(Read("rule r given a[m,n] source Relu(a) target MatMul(Eye(size=m), Relu(a))"));
  EGraph g(words);
  const ClassId a = g.AddInput(0, words.InternType(DataType::kFloat16, {2, 3}));
  const ClassId relu = g.Add(words.InternOperator(ops::Relu{}), std::vector{a});
  Saturator s(rules);
  s.Run(g, {.iterations = 1});
  const ClassId eye = g.Find(words.InternOperator(ops::Eye{2}, DataType::kFloat16), {});
  ASSERT_NE(eye, kNoClass);
  EXPECT_EQ(g.Find(words.InternOperator(ops::MatMul{}), std::vector{eye, relu}), g.Find(relu));
}

// A rule with too many matches rests, and has its turn when nothing else is left to do.
TEST(SaturationTest, ARuleThatRestsLosesNothing) {
  for (const std::size_t backoff : {std::size_t{1}, std::size_t{3}, SIZE_MAX}) {
    Vocabulary words;
    RuleSet rules(words);
    rules.AddAsWritten(Read("rule r given a[m] source Relu(a) target Neg(Neg(Relu(a)))"));
    EGraph g(words);
    const TypeId type = words.InternType(DataType::kFloat, {2});
    for (int k = 0; k < 9; ++k) {
      g.Add(words.InternOperator(ops::Relu{}), std::vector{g.AddInput(k, type)});
    }
    Saturator s(rules);
    EXPECT_EQ(s.Run(g, {.iterations = 1, .backoff = backoff}).stop, Stop::kIterations);
    EXPECT_EQ(g.node_count() == 18, backoff < 9);
    EXPECT_EQ(s.Run(g, {.iterations = 100, .backoff = backoff}).stop, Stop::kSaturated);
    EXPECT_EQ(g.node_count(), 36u);
  }
}

TEST(SaturationTest, ASupervisorStopsAndForbids) {
  struct Strict : Supervisor {
    bool Stop() override { return stop; }
    bool Allows(const EGraph&, const EGraphRule& rule, std::span<const ClassId> outputs) override {
      EXPECT_EQ(outputs.size(), rule.compiled().roots().size());
      return rule.number() != 0;
    }
    void Applied(const EGraph& g, const EGraphRule& rule, std::span<const ClassId>,
                 NodeId first_made) override {
      EXPECT_NE(rule.number(), 0);
      made += NodeId(g.node_bound()) - first_made;
    }
    bool stop = false;
    NodeId made = 0;
  };
  Vocabulary words;
  RuleSet rules(words);
  rules.Add(Read("rule no given a[m] source Relu(a) target Tanh(a)"));
  rules.Add(Read("rule yes given a[m] source Relu(a) target Relu(Relu(a))"));
  EGraph g(words);
  const ClassId a = g.AddInput(0, words.InternType(DataType::kFloat, {2}));
  const ClassId relu = g.Add(words.InternOperator(ops::Relu{}), std::vector{a});
  Strict strict;
  Saturator s(rules);
  s.Supervise(&strict);
  strict.stop = true;
  EXPECT_EQ(s.Run(g, {}).stop, Stop::kStopped);
  EXPECT_EQ(g.node_count(), 2u);
  strict.stop = false;
  EXPECT_EQ(s.Run(g, {}).stop, Stop::kSaturated);
  EXPECT_EQ(strict.made, 1);
  EXPECT_EQ(g.Find(words.InternOperator(ops::Relu{}), std::vector{relu}), g.Find(relu));
  EXPECT_EQ(g.Find(words.InternOperator(ops::Tanh{}), std::vector{a}), kNoClass);
}

TEST(SaturationTest, WeightsAreLeftAloneButForWhatCreatesNothing) {
  Vocabulary words;
  RuleSet rules(words);
  rules.Add(Read("rule grow given a[m,m] source Relu(a) target Relu(Tanh(a))"));
  rules.Add(Read("rule twice given a[m,n] source Transpose(Transpose(a)) target a"));
  EGraph g(words);
  const TypeId type = words.InternType(DataType::kFloat, {2, 2});
  const ClassId w = g.AddInput(0, type, true), x = g.AddInput(1, type);
  const OpId relu = words.InternOperator(ops::Relu{}),
             turn = words.InternOperator(ops::Transpose{});
  g.Add(relu, std::vector{w});
  g.Add(relu, std::vector{x});
  const ClassId twice = g.Add(turn, std::vector{g.Add(turn, std::vector{w})});
  Saturator(rules).Run(g, {.iterations = 1, .weights = false});
  EXPECT_TRUE(g.Equal(twice, w));
  EXPECT_EQ(g.Find(words.InternOperator(ops::Tanh{}), std::vector{w}), kNoClass);
  EXPECT_NE(g.Find(words.InternOperator(ops::Tanh{}), std::vector{x}), kNoClass);
}

TEST(RuleSetTest, AsWrittenTheTargetIsMatchedOnlyIfBothAreSaid) {
  Vocabulary words;
  RuleSet rules(words);
  const char* text = "rule r given a[m] source Relu(a) target Relu(Tanh(a)) ";
  rules.Add(Read(text));
  EXPECT_EQ(rules.directions().size(), 2u);
  rules.AddAsWritten(Read(text));
  EXPECT_EQ(rules.directions().size(), 3u);
  rules.AddAsWritten(Read(std::string(text) + "both"));
  EXPECT_EQ(rules.directions().size(), 5u);
}

// Relu(a b) twice, once of an exchanged sum: shared parts, congruence and commutativity.
TEST(GraphProofTest, NamesEachApplicationOnceAndIsChecked) {
  const auto build = [](bool to) {
    graph::Graph g;
    const graph::TensorType type{DataType::kFloat, graph::ToShape({4, 4})};
    const auto a = g.AddInput("a", graph::InputKind::kActivation, type);
    const auto b = g.AddInput("b", graph::InputKind::kActivation, type);
    const auto add = [&](const ops::Operator& op, std::initializer_list<graph::NodeId> operands) {
      const auto id = g.Add(op, operands);
      CHECK(id.ok());
      return *id;
    };
    const auto turned = [&](graph::NodeId id) {
      return to ? id : add(ops::Transpose{}, {add(ops::Transpose{}, {id})});
    };
    const auto left = turned(add(ops::MatMul{}, {a, b}));
    const auto sum = to ? add(ops::Add{}, {a, left}) : add(ops::Add{}, {left, a});
    g.SetOutputs({add(ops::MatMul{}, {sum, left}), add(ops::Relu{}, {left})});
    return g;
  };
  const graph::Graph from = build(false), to = build(true);
  Vocabulary words;
  RuleSet rules(words);
  rules.Add(Read("rule useless given a[m,n] source Relu(a) target Relu(Relu(a))"));
  rules.Add(Read("rule twice given a[m,n] source Transpose(Transpose(a)) target a"));
  EGraph g(words, {.commutative = true, .keep_operands = true});
  AddGraph(g, from, from.outputs());
  std::vector<Application> applications;
  Saturator s(rules);
  s.Record(&applications);
  s.Run(g, {});
  EXPECT_GE(applications.size(), 2u);
  const auto proof = ProveGraph(rules, g, applications, from, to);
  ASSERT_TRUE(proof.ok());
  ASSERT_EQ(proof->steps.size(), 1u);
  EXPECT_EQ(proof->steps[0].rule, 1);
  EXPECT_TRUE(CheckProof(*proof, rules, true).ok());
  EXPECT_FALSE(CheckProof(*proof, rules, false).ok());  // The sum is exchanged.
  const auto refused = [&](auto change) {
    GraphProof bad = *proof;
    change(bad);
    return CheckProof(bad, rules, true).code() == absl::StatusCode::kFailedPrecondition;
  };
  EXPECT_TRUE(refused([](GraphProof& p) { p.steps.clear(); }));
  EXPECT_TRUE(refused([](GraphProof& p) { p.steps[0].rule = 0; }));
  EXPECT_TRUE(refused([](GraphProof& p) { p.steps[0].rule = 7; }));
  EXPECT_TRUE(refused([](GraphProof& p) { p.steps[0].outputs = {1}; }));
  EXPECT_TRUE(refused([](GraphProof& p) { p.steps[0].inputs.clear(); }));
  EXPECT_TRUE(refused([](GraphProof& p) { p.steps[0].values.back() += 1; }));
  EXPECT_TRUE(refused([](GraphProof& p) { p.to[0] = p.to[1]; }));
  EXPECT_FALSE(ProveGraph(rules, g, {}, from, to).ok());
}

TEST(RuleSetTest, ATruncatedSetMatchesItsNewRules) {
  Vocabulary words;
  RuleSet rules(words);
  Saturator s(rules);
  const auto nodes_after = [&](std::string_view text) {
    rules.Truncate(0);
    EXPECT_EQ(rules.Add(Read(text)), 0);
    EGraph g(words);
    const ClassId a = g.AddInput(0, words.InternType(DataType::kFloat, {2, 2}));
    g.Add(words.InternOperator(ops::Relu{}), std::vector{a});
    g.Add(words.InternOperator(ops::Neg{}), std::vector{a});
    s.Run(g, {.iterations = 1});
    return g.node_count();
  };
  EXPECT_EQ(nodes_after("rule r given a[m,n] source Relu(a) target Relu(Relu(a))"), 4u);
  EXPECT_EQ(nodes_after("rule r given a[m,n] source Neg(a) target Neg(Relu(Relu(a)))"), 5u);
  EXPECT_EQ(nodes_after("rule r given a[m,m] source Tanh(a) target Tanh(Neg(a))"), 3u);
}

// ---------------------------------------------------------------------------- against the
// evaluator

// The classes of terms in an e-graph, each named by its first term.
std::vector<graph::TermId> Partition(const EGraph& g, const std::vector<ClassId>& classes) {
  std::vector<graph::TermId> first(g.class_bound(), graph::kNoTerm), out;
  for (std::size_t t = 0; t < classes.size(); ++t) {
    graph::TermId& f = first[std::size_t(g.Find(classes[t]))];
    if (f == graph::kNoTerm) f = graph::TermId(t);
    out.push_back(f);
  }
  return out;
}

std::vector<graph::TermId> Truth(const test::SmallUniverse& u) {
  std::vector<graph::TermId> out(u.terms.size());
  for (const auto& members : u.classes) {
    for (graph::TermId t : members) out[std::size_t(t)] = members[0];
  }
  return out;
}

TEST(SaturationPropertyTest, TheMatrixUniverseToTwoOperatorsFallsIntoItsTrueClasses) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  ASSERT_EQ(u.terms.size(), 3u + 42u + 1116u);
  for (bool commutative : {false, true}) {
    Vocabulary words;
    RuleSet rules(words);
    AddMatrixRules(rules, commutative);
    Saturator s(rules);
    TermLoader loader(words, u.terms);
    EGraph g(words, {.commutative = commutative});
    const auto classes = loader.AddAll(g);
    EXPECT_EQ(s.Run(g, {.iterations = 50, .create = false}).stop, Stop::kSaturated);
    EXPECT_EQ(Partition(g, classes), Truth(u));

    // And each equal pair alone.
    for (const auto& members : u.classes) {
      for (std::size_t i = 1; i < members.size(); ++i) {
        g.Clear();
        const Goal goal{loader.Add(g, members[0]), loader.Add(g, members[i])};
        EXPECT_EQ(s.Run(g, {}, goal).stop, Stop::kGoal)
            << u.terms.Print(members[0]) << " = " << u.terms.Print(members[i]);
      }
    }
  }
}

// The value of every class, found bottom up; and whether all nodes of a class agree on it.
bool NodesAgree(const EGraph& g, const std::vector<eval::Tensor<eval::Exact>>& inputs) {
  std::vector<std::optional<eval::Tensor<eval::Exact>>> values(g.class_bound());
  bool agree = true;
  for (int round = 0; round < 2; ++round) {  // The second round sees all classes valued.
    for (bool progress = true; progress;) {
      progress = false;
      for (NodeId n = 0; n < NodeId(g.node_bound()); ++n) {
        if (!g.alive(n)) continue;
        auto& value = values[std::size_t(g.class_of(n))];
        if (value && round == 0) continue;
        eval::Tensor<eval::Exact> v;
        if (g.is_input(n)) {
          v = inputs[std::size_t(-1 - g.op(n))];
        } else {
          std::vector<const eval::Tensor<eval::Exact>*> operands;
          for (ClassId c : g.operands(n)) {
            if (values[std::size_t(c)]) operands.push_back(&*values[std::size_t(c)]);
          }
          if (operands.size() < g.operands(n).size()) continue;
          v = *eval::Apply(g.vocabulary().op(g.op(n)), operands, 5);
        }
        if (value) agree = agree && value->extents == v.extents && value->data == v.data;
        if (!value) progress = true;
        value = std::move(v);
      }
      if (round == 1) break;
    }
  }
  return agree;
}

TEST(SaturationPropertyTest, AllNodesOfAClassHaveOneValue) {
  std::mt19937 rng(11);
  Vocabulary words;
  RuleSet rules(words);
  AddMatrixRules(rules, false);
  Saturator s(rules);
  std::size_t nodes = 0;
  for (int round = 0; round < 25; ++round) {
    EGraph g(words);
    std::vector<eval::Tensor<eval::Exact>> inputs;
    for (int k = 0; k < 3; ++k) {
      const graph::Extents extents{2, k == 0 ? 3 : 2};
      g.AddInput(k, words.InternType(DataType::kFloat, extents));
      inputs.push_back({extents, {}});
      for (std::int64_t e = graph::ElementCount(extents); e > 0; --e) {
        inputs.back().data.push_back(eval::FromFraction(int(rng() % 200) - 100, 8));
      }
    }
    const std::vector<ops::Operator> choice{ops::Transpose{}, ops::Relu{}, ops::MatMul{},
                                            ops::Add{},       ops::Mul{},  ops::Concat{1}};
    for (int k = 0; k < 60; ++k) {
      const ops::Operator& op = choice[rng() % choice.size()];
      std::vector<ClassId> operands{ClassId(rng() % g.class_bound())};
      if (ops::InfoOf(op).arity_max >= 2) operands.push_back(ClassId(rng() % g.class_bound()));
      if (g.node_count() < 24) g.Add(words.InternOperator(op), operands);
    }
    s.Run(g, {.iterations = 3, .nodes = 400});
    nodes += g.node_count();
    EXPECT_TRUE(NodesAgree(g, inputs)) << "round " << round;
  }
  EXPECT_GT(nodes, 2000u);
}

TEST(SaturationPropertyTest, IncrementalMatchingMissesNothing) {
  const test::SmallUniverse u = test::MatrixUniverse(1);
  Vocabulary words;
  RuleSet rules(words);
  AddMatrixRules(rules, true);
  rules.Add(
      Read("rule merge given a[m,k] b[k,n] c[k,p] source MatMul(a, b), MatMul(a, c) "
           "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=0, end=n), "
           "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=n, end=n+p)"));
  Saturator s(rules);
  TermLoader loader(words, u.terms);
  for (graph::TermId id = 3; id + 7 < graph::TermId(u.terms.size()); id += 7) {
    EGraph fast(words, {.commutative = true}), slow(words, {.commutative = true});
    for (EGraph* g : {&fast, &slow}) {
      for (graph::TermId t = id; t < id + 3; ++t) loader.Add(*g, t);
    }
    s.Run(fast, {.iterations = 3, .nodes = 100'000});
    for (int k = 0; k < 3; ++k) s.Run(slow, {.iterations = 1, .nodes = 100'000});
    EXPECT_EQ(fast.node_count(), slow.node_count());
    std::set<ClassId> fast_classes, slow_classes;
    for (NodeId n = 0; n < NodeId(fast.node_bound()); ++n) fast_classes.insert(fast.class_of(n));
    for (NodeId n = 0; n < NodeId(slow.node_bound()); ++n) slow_classes.insert(slow.class_of(n));
    EXPECT_EQ(fast_classes.size(), slow_classes.size());
  }
}

TEST(SaturationPropertyTest, RulesAddedOneByOneReachTheSameClasses) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  Vocabulary words;
  RuleSet all(words), growing(words);
  AddMatrixRules(all, true);
  TermLoader loader(words, u.terms);
  EGraph once(words, {.commutative = true});
  const auto classes = loader.AddAll(once);
  Saturator(all).Run(once, {.iterations = 50, .create = false});
  EGraph step(words, {.commutative = true});
  loader.AddAll(step);
  Saturator s(growing);
  step.ClearChanges();
  std::shared_ptr<const rules::Rule> last;
  for (const EGraphRule& d : all.directions()) {
    if (d.compiled().shared_rule() == last) continue;
    last = d.compiled().shared_rule();
    const std::int32_t number = growing.Add(last);
    s.Run(step, {.iterations = 50, .create = false}, {}, number);
  }
  EXPECT_EQ(Partition(step, classes), Partition(once, classes));
}

}  // namespace
}  // namespace tenon::egraph
