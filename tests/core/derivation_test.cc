// Derivations: the e-graph explains what it found, and Replay believes nothing that is not so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/egraph/explain.h"
#include "core/rules/instance.h"
#include "core/rules/text.h"

namespace tenon::egraph {
namespace {

using graph::NodeId;
using rules::Derivation;
using rules::Rule;
using ::testing::HasSubstr;

using RuleList = std::vector<std::shared_ptr<const Rule>>;

RuleList MatrixRules() {
  std::ifstream in(TENON_SOURCE_DIR "/tests/core/matrix.rules");
  std::stringstream text;
  text << in.rdbuf();
  const auto parsed = rules::ParseRules(text.str(), "matrix.rules");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  RuleList out;
  for (const rules::ParsedRule& p : *parsed) out.push_back(std::make_shared<const Rule>(*p.rule));
  return out;
}

// `text` at random sizes: the outputs of the source, then those of the target.
graph::Graph Instance(const std::string& text) {
  const auto rule = rules::ParseRule(text);
  EXPECT_TRUE(rule.ok()) << rule.status();
  rules::Dice dice(3);
  const auto values = rules::RandomValues(*rule, dice);
  std::vector<NodeId> roots = rule->source;
  roots.insert(roots.end(), rule->target.begin(), rule->target.end());
  return *graph::Instantiate(rule->graph, roots, *values);
}

std::optional<Derivation> DeriveOutput(const RuleList& list, const graph::Graph& instance,
                                       std::size_t output = 0) {
  Vocabulary words;
  RuleSet set(words);
  for (const auto& rule : list) set.Add(rule);
  const std::vector<NodeId>& roots = instance.outputs();
  const auto found = Derive(set, instance, roots[output], roots[roots.size() / 2 + output],
                            {.iterations = 8, .nodes = 10'000});
  EXPECT_TRUE(found.ok()) << found.status();
  return *found;
}

class DerivationTest : public ::testing::Test {
 protected:
  const RuleList rules_ = MatrixRules();
};

TEST_F(DerivationTest, OfEqualTermsIsReplayed) {
  const char* kTrue[] = {
      // Commutativity below an operator that needs it on both sides.
      "rule r given a[m,k] b[k,n] c[m,k] source MatMul(Add(a, c), b) target MatMul(Add(c, a), b)",
      "rule r given a[m,n] b[m,n] c[m,n] d[m,n] source Add(Add(a, b), Add(c, d)) "
      "target Add(Add(d, b), Add(a, c))",
      "rule r given a[m,k] b[k,n] c[n,l] d[l,o] source MatMul(MatMul(MatMul(a, b), c), d) "
      "target MatMul(a, MatMul(b, MatMul(c, d)))",
      "rule r given a[m,k] b[k,n] source Transpose(MatMul(Transpose(b), Transpose(a))) "
      "target MatMul(a, b)",
      "rule r given a[m,n] source Relu(Relu(Relu(a))) target Relu(a)",
      // The same step is needed at two places of one term.
      "rule r given a[m,n] b[m,n] source Mul(Add(a, b), Relu(Add(a, b))) "
      "target Mul(Add(b, a), Relu(Add(b, a)))",
  };
  for (const char* text : kTrue) {
    const graph::Graph instance = Instance(text);
    const auto found = DeriveOutput(rules_, instance);
    ASSERT_TRUE(found.has_value()) << text;
    EXPECT_GT(found->steps.size(), 0u);
    const auto replayed = rules::Replay(*found, rules_);
    ASSERT_TRUE(replayed.ok()) << replayed.status() << text;
    EXPECT_EQ(replayed->states.size(), found->steps.size() + 1);
    EXPECT_EQ(replayed->states.front(), instance.outputs()[0]);
    EXPECT_EQ(replayed->states.back(), instance.outputs()[1]);
  }
}

TEST_F(DerivationTest, OfWhatIsNotEqualIsNone) {
  EXPECT_FALSE(DeriveOutput(rules_, Instance("rule r given a[m,m] b[m,m] source MatMul(a, b) "
                                             "target MatMul(b, a)")));
  EXPECT_FALSE(DeriveOutput(rules_, Instance("rule r given a[m,n] b[m,n] source Relu(Add(a, b)) "
                                             "target Add(Relu(a), Relu(b))")));
}

TEST_F(DerivationTest, OfEqualGraphsHasNoSteps) {
  const graph::Graph one = Instance("rule r given a[m,n] source Relu(a) target Relu(a)");
  const auto found = DeriveOutput(rules_, one);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->steps.empty());
}

// Each change of each step that is another statement is noticed.
TEST_F(DerivationTest, ReplayRefusesWhatIsChanged) {
  const auto found = DeriveOutput(
      rules_, Instance("rule r given a[m,k] b[k,n] c[m,k] source Transpose(MatMul(Add(a, c), b)) "
                       "target MatMul(Transpose(b), Transpose(Add(c, a)))"));
  ASSERT_TRUE(found.has_value());
  ASSERT_GE(found->steps.size(), 2u);
  const auto refused = [&](const Derivation& changed) {
    const auto replayed = rules::Replay(changed, rules_);
    EXPECT_FALSE(replayed.ok());
    return replayed.ok() ? std::string() : base::Message(replayed.status());
  };
  for (std::size_t k = 0; k < found->steps.size(); ++k) {
    Derivation changed = *found;
    changed.steps.erase(changed.steps.begin() + std::ptrdiff_t(k));
    refused(changed);
    changed = *found;
    changed.steps[k].place.push_back(0);
    refused(changed);
    changed = *found;
    changed.steps[k].place.push_back(7);
    refused(changed);
    changed = *found;
    changed.steps[k].values.back() += 1;
    EXPECT_THAT(refused(changed), HasSubstr("step " + std::to_string(k + 1)));
    changed = *found;
    changed.steps[k].values.back() = 0;
    refused(changed);
    changed = *found;
    changed.steps[k].values.pop_back();
    refused(changed);
    changed = *found;
    changed.steps[k].output = 1;
    refused(changed);
    changed = *found;
    changed.steps[k].rule = std::int32_t(rules_.size());
    refused(changed);
    changed = *found;
    changed.steps[k].rule = -1;
    refused(changed);
    for (std::size_t input = 0; input < found->steps[k].inputs.size(); ++input) {
      changed = *found;
      changed.steps[k].inputs[input] = graph::kNoNode;
      refused(changed);
      changed = *found;
      changed.steps[k].inputs[input] = found->from;  // Of another shape.
      refused(changed);
    }
  }
  Derivation other = *found;
  other.to = other.from;
  EXPECT_THAT(refused(other), HasSubstr("not the one"));
}

// A rule is not applied where its conditions do not hold.
TEST_F(DerivationTest, ReplayAsksForConditions) {
  const RuleList even{std::make_shared<const Rule>(*rules::ParseRule(
      "rule even given a[m,n] source Relu(Transpose(a)) target Transpose(Relu(a)) where m >= 9"))};
  Derivation d;
  d.graph = Instance("rule r given a[m,n] source Relu(Transpose(a)) target Transpose(Relu(a))");
  d.from = d.graph.outputs()[0];
  d.to = d.graph.outputs()[1];
  const graph::Shape& shape = d.graph.shape(d.graph.input_node(0));
  std::vector<std::int64_t> values(even[0]->graph.symbols().size(), 0);
  values[1] = shape[0].constant();
  values[2] = shape[1].constant();
  d.steps.push_back({.values = values, .inputs = {d.graph.input_node(0)}});
  const auto replayed = rules::Replay(d, even);
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(base::Message(replayed.status()), HasSubstr("does not hold"));
}

TEST_F(DerivationTest, OfSeveralOutputsIsOneEach) {
  const char* text =
      "rule r given a[m,k] b[k,n] c[k,p] source MatMul(a, b), MatMul(a, c) "
      "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=0, end=n), "
      "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=n, end=n+p)";
  RuleList list = MatrixRules();
  list.push_back(std::make_shared<const Rule>(*rules::ParseRule(text)));
  const graph::Graph instance = Instance(text);
  for (std::size_t output : {0u, 1u}) {
    const auto found = DeriveOutput(list, instance, output);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(rules::Replay(*found, list).ok());
  }
}

}  // namespace
}  // namespace tenon::egraph
