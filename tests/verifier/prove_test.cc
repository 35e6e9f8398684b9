// Contracts of Prove, beyond the verdicts of the corpora.
#include "verifier/prove.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/eval/eval.h"
#include "core/rules/text.h"
#include "tests/verifier/corpus.h"

namespace tenon::verifier {
namespace {

rules::Rule Parsed(const char* text) {
  auto rule = rules::ParseRule(text);
  CHECK(rule.ok());
  return *std::move(rule);
}

Verdict Proved(const rules::Rule& rule, const Budget& budget = {}) {
  const auto v = Prove(rule, budget);
  EXPECT_TRUE(v.ok()) << base::Message(v.status());
  return v.ok() ? *v : Verdict{};
}

const char kAssociative[] =
    "rule r given a[m,k] b[k,n] c[n,l] source MatMul(MatMul(a, b), c) target MatMul(a, MatMul(b, "
    "c))";
const char kMergedConv[] =
    "rule r given x[N,C,H,W] k[F,C,R,S] l[G,C,R,S] attr s >= 1, p >= 0 "
    "source Concat(Relu(Conv(x, k, strides=[s,s], pads=[p,p,p,p])), "
    "Relu(Conv(x, l, strides=[s,s], pads=[p,p,p,p])), axis=1) "
    "target Relu(Conv(x, Concat(k, l, axis=0), strides=[s,s], pads=[p,p,p,p]))";

// Whatever a source computes, negating it twice changes nothing. A source that were not found equal
// to itself would make every verdict about it worthless.
TEST(ProveTest, EverySourceEqualsItself) {
  for (const CorpusRule& c : ReadCorpus()) {
    if (!c.parsed.rule.ok() || c.parsed.expect == rules::Expect::kVacuous) continue;
    rules::Rule rule = *c.parsed.rule;
    rule.both = false;
    for (std::size_t k = 0; k < rule.source.size(); ++k) {
      const auto once = rule.graph.Add(ops::Neg{}, {rule.source[k]});
      ASSERT_TRUE(once.ok());
      const auto twice = rule.graph.Add(ops::Neg{}, {*once});
      ASSERT_TRUE(twice.ok());
      rule.target[k] = *twice;
    }
    const Verdict v = Proved(rule);
    EXPECT_EQ(v.kind, VerdictKind::kProved) << c.parsed.name << ": " << v.reason;
  }
}

TEST(ProveTest, TheSameGraphTwiceIsNoRule) {
  rules::Rule rule = Parsed(kAssociative);
  rule.target = rule.source;
  EXPECT_EQ(Proved(rule).kind, VerdictKind::kIllFormed);
}

TEST(ProveTest, VerdictAndCountersRepeat) {
  const rules::Rule rule = Parsed(kMergedConv);
  const Verdict first = Proved(rule);
  ASSERT_EQ(first.kind, VerdictKind::kProved);
  EXPECT_GT(first.counters.queries, 0);
  EXPECT_GT(first.counters.rlimit, 0);
  Proved(Parsed(kAssociative));  // What was proved before does not matter,
  Verdict other;
  std::thread thread([&] { other = Proved(rule); });  // nor does the thread.
  const Verdict again = Proved(rule);
  thread.join();
  for (const Verdict& v : {again, other}) {
    EXPECT_EQ(v.kind, first.kind);
    EXPECT_EQ(v.counters, first.counters);
    EXPECT_TRUE(v.repeatable);
  }
}

TEST(ProveTest, TheNameDoesNotMatter) {
  rules::Rule rule =
      Parsed("rule r given a[n,n] b[n,n] source MatMul(a, b) target MatMul(b, a) expect refuted");
  const Verdict first = Proved(rule);
  rule.name = "another";
  rule.expect = rules::Expect::kNone;
  const Verdict second = Proved(rule);
  ASSERT_TRUE(first.counterexample && second.counterexample);
  EXPECT_EQ(Print(*first.counterexample), Print(*second.counterexample));
}

TEST(ProveTest, CounterexamplesReplay) {
  int replayed = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.parsed.expect != rules::Expect::kRefuted || !c.parsed.rule.ok()) continue;
    const rules::Rule& rule = *c.parsed.rule;
    const Verdict v = Proved(rule);
    ASSERT_TRUE(v.counterexample.has_value()) << c.parsed.name;
    const Counterexample& e = *v.counterexample;
    std::vector<std::int64_t> sizes(rule.graph.symbols().size(), 0);
    for (const auto& [name, value] : e.sizes) sizes[rule.graph.symbols().Find(name)] = value;
    const graph::NodeId roots[] = {rule.source[std::size_t(e.output)],
                                   rule.target[std::size_t(e.output)]};
    const auto g = graph::Instantiate(rule.graph, roots, sizes);
    ASSERT_TRUE(g.ok()) << c.parsed.name << ": " << base::Message(g.status());
    std::vector<eval::Tensor<double>> inputs;
    for (const auto& [name, tensor] : e.inputs) inputs.push_back(tensor);
    const auto outputs = eval::Evaluate(*g, g->outputs(), inputs);
    ASSERT_TRUE(outputs.ok());
    std::int64_t at = 0;
    for (int a = 0; a < e.index.size(); ++a) at = at * (*outputs)[0].extents[a] + e.index[a];
    EXPECT_EQ((*outputs)[0].data[std::size_t(at)], e.source_value) << c.parsed.name;
    EXPECT_EQ((*outputs)[1].data[std::size_t(at)], e.target_value) << c.parsed.name;
    EXPECT_GT(std::fabs(e.source_value - e.target_value), 1e-7) << c.parsed.name;
    ++replayed;
  }
  EXPECT_GE(replayed, 10);
}

TEST(ProveTest, RuleWithoutEnoughSolverBudgetIsNotProved) {
  Budget budget;
  budget.solver.integer_rlimit = 1;
  const Verdict v = Proved(Parsed(kMergedConv), budget);
  EXPECT_NE(v.kind, VerdictKind::kProved);
  EXPECT_NE(v.kind, VerdictKind::kRefuted);
  EXPECT_GT(v.counters.undecided, 0);
  EXPECT_FALSE(v.reason.empty());
}

TEST(ProveTest, RuleWithTooManyTermsIsUnknown) {
  Budget budget;
  budget.terms.steps = 10;
  EXPECT_EQ(Proved(Parsed(kMergedConv), budget).kind, VerdictKind::kUnknown);
}

TEST(ProveTest, OpaqueOperatorsAreUnknown) {
  rules::Rule rule = Parsed("rule r given a[m,n] source Relu(Relu(a)) target Relu(a)");
  ops::Opaque opaque;
  opaque.shape = rule.graph.shape(rule.source[0]);
  const graph::NodeId operands[] = {rule.graph.input_node(0)};
  const auto node = rule.graph.Add(ops::Operator(opaque), operands);
  ASSERT_TRUE(node.ok());
  rule.source[0] = *node;
  EXPECT_EQ(Proved(rule).kind, VerdictKind::kUnknown);
}

// A polynomial above degree 8 equals nothing, and no verdict may rest on it.
TEST(ProveTest, OverflowIsNeverAProof) {
  const std::string ones = "Fill(shape=[a,b,c], value=1)";
  const std::string s = "ReduceSum(ReduceSum(ReduceSum(" + ones + ", axis=0), axis=1), axis=2)";
  const std::string text = "rule r given x[a,b,c] source Mul(x, Mul(Mul(" + s + "," + s + "),Mul(" +
                           s + "," + s + "))) target Mul(x, Mul(" + s + ",Mul(" + s + ",Mul(" + s +
                           "," + s + "))))";
  const Verdict v = Proved(Parsed(text.c_str()));
  EXPECT_EQ(v.kind, VerdictKind::kUnknown) << v.reason;
}

TEST(ProveTest, ContradictionOfProverAndTesterIsAnError) {
  Budget budget;
  budget.cross_check = true;
  budget.fault = nf::Fault::kEverythingUnsat;
  const auto v =
      Prove(Parsed("rule r given a[n,n] b[n,n] source MatMul(a, b) target MatMul(b, a)"), budget);
  ASSERT_FALSE(v.ok());
  EXPECT_EQ(v.status().code(), absl::StatusCode::kInternal);
}

// The tester draws small sizes; this rule is wrong only where its dim is large.
TEST(ProveTest, ModelsOfTheSolverBecomeCounterexamples) {
  const rules::Rule rule = Parsed(
      "rule r given x[n] attr p >= 40 where p < 60 "
      "source Slice(Pad(x, begins=[0], ends=[p+1]), axis=0, start=p, end=p+1) "
      "target Fill(shape=[1], value=0)");
  const Verdict v = Proved(rule);
  EXPECT_EQ(v.kind, VerdictKind::kRefuted) << NameOf(v.kind) << " " << v.reason;
}

TEST(ProveTest, MeetsIsExact) {
  using rules::Expect;
  EXPECT_TRUE(Meets(Expect::kNone, VerdictKind::kUnknown));
  EXPECT_TRUE(Meets(Expect::kNotProved, VerdictKind::kIllFormed));
  EXPECT_FALSE(Meets(Expect::kNotProved, VerdictKind::kProved));
  EXPECT_FALSE(Meets(Expect::kRefuted, VerdictKind::kUnproved));
  EXPECT_FALSE(Meets(Expect::kProved, VerdictKind::kRefuted));
  EXPECT_TRUE(Meets(Expect::kVacuous, VerdictKind::kVacuous));
  EXPECT_FALSE(Meets(Expect::kIllFormed, VerdictKind::kVacuous));
}

}  // namespace
}  // namespace tenon::verifier
