// What is found of rules whose truth is known.
#include "interop/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/rules/text.h"
#include "interop/flexflow_file.h"
#include "interop/report.h"
#include "tests/support/process.h"
#include "verifier/prove.h"

namespace tenon::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<PeerRule> Patterns() {
  return *ReadFlexFlow(testing::ReadFile(TENON_SOURCE_DIR "/tests/interop/data/patterns.json"),
                       "patterns.json");
}

PeerRule Pattern(std::string_view name) {
  for (const PeerRule& rule : Patterns()) {
    if (rule.name == name) return rule;
  }
  ADD_FAILURE() << "no pattern " << name;
  return {};
}

Judged JudgedPattern(std::string_view name) {
  const auto judged = Judge(Pattern(name));
  EXPECT_TRUE(judged.ok()) << judged.status();
  return judged.ok() ? *judged : Judged{};
}

TEST(JudgeTest, EveryPatternIsJudgedRight) {
  constexpr const char* kOneGroup = "convolution 0 has one group";
  constexpr const char* kBothOne = "convolution 0 has one group and convolution 1 has one group";
  constexpr const char* kFilters = "convolutions 0 and 1 have equally many filters in a group";
  const std::map<std::string, std::pair<Finding, std::string>> expected = {
      {"sum_of_convs", {Finding::kConditional, kBothOne}},
      {"beside", {Finding::kConditional, kFilters}},
      {"beside_relu", {Finding::kConditional, kFilters}},
      {"sum_of_convs_swapped", {Finding::kConditional, kBothOne}},
      {"shared", {Finding::kConditional, kOneGroup}},
      {"shared_relu_outside", {Finding::kConditional, kOneGroup}},
      {"shared_split", {Finding::kConditional, kOneGroup}},
      {"shared_relu", {Finding::kConditional, kOneGroup}},
      {"shared_relu_split", {Finding::kConditional, kOneGroup}},
      {"beside_swapped", {Finding::kConditional, kFilters}},
      {"beside_swapped_relu", {Finding::kConditional, kFilters}},
      {"identity_kernel", {Finding::kConditional, "the outputs have one shape"}},
      {"pool_is_a_conv", {Finding::kRefuted, "output 0"}},
      {"sum_is_product", {Finding::kRefuted, "output 0"}},
      {"other_shape", {Finding::kRefuted, ""}},
  };
  int proved = 0;
  for (const PeerRule& rule : Patterns()) {
    const auto judged = Judge(rule);
    ASSERT_TRUE(judged.ok()) << rule.name << ": " << judged.status();
    const auto it = expected.find(rule.name);
    const Finding finding = it == expected.end() ? Finding::kProved : it->second.first;
    EXPECT_EQ(NameOf(judged->finding), NameOf(finding)) << rule.name << ": " << Remark(*judged);
    if (it != expected.end()) {
      EXPECT_THAT(Remark(*judged), HasSubstr(it->second.second));
    }
    proved += finding == Finding::kProved ? 1 : 0;
  }
  EXPECT_EQ(proved, 13);
}

// Without its condition a rule is wrong, by evaluation or because the outputs have other shapes, at
// shapes that the peer accepts; with it, it is proved.
TEST(JudgeTest, ConditionsAreNeededAndSuffice) {
  int conditional = 0;
  for (const PeerRule& rule : Patterns()) {
    const auto judged = Judge(rule);
    ASSERT_TRUE(judged.ok());
    for (const Judgement& j : judged->ranks) {
      if (j.finding != Finding::kConditional) continue;
      ++conditional;
      ASSERT_TRUE(j.verdict) << rule.name;
      if (rule.name == "identity_kernel") {
        EXPECT_EQ(j.verdict->kind, verifier::VerdictKind::kIllFormed);
      } else {
        ASSERT_TRUE(j.verdict->counterexample) << rule.name;
        EXPECT_NE(j.verdict->counterexample->source_value, j.verdict->counterexample->target_value);
      }
      EXPECT_EQ(verifier::Prove(*j.conditioned, {})->kind, verifier::VerdictKind::kProved);
      EXPECT_THAT(j.undecided, ::testing::IsEmpty()) << rule.name;
    }
  }
  EXPECT_EQ(conditional, 12);
}

TEST(JudgeTest, OpenRanksAreAllTried) {
  std::vector<std::string> labels;
  for (const Judgement& j : JudgedPattern("sums").ranks) labels.push_back(j.label);
  EXPECT_THAT(labels, ElementsAre("rank 1", "rank 2", "rank 3", "rank 4"));
  labels.clear();
  for (const Judgement& j : JudgedPattern("associate").ranks) labels.push_back(j.label);
  EXPECT_THAT(labels, ElementsAre("rank 2", "rank 3", "rank 4"));
  EXPECT_EQ(JudgedPattern("fuse").ranks.size(), 1u);
}

// Shapes are as general as the operators allow.
TEST(JudgeTest, ShapesAreTheMostGeneralOnes) {
  EXPECT_EQ(rules::PrintRule(*JudgedPattern("fuse").ranks[0].accepted),
            "rule fuse\n"
            "given   v10[g1*q2,c10,3,3] v7[n7,c10*g1,h7,w7]\n"
            "source  Relu(Conv(v7, v10, pads=[1,1,1,1], group=g1))\n"
            "target  Conv(v7, v10, pads=[1,1,1,1], group=g1, activation=relu)\n");
  const std::string cut = rules::PrintRule(*JudgedPattern("cut_somewhere").ranks[0].accepted);
  EXPECT_THAT(cut, HasSubstr("source  Relu(Slice(v1, end=p1)), Relu(Slice(v1, start=p1, end="));
}

TEST(JudgeTest, WhatIsNotUnderstoodIsUnknownAndSaysWhy) {
  const auto judged = [](PeerRule rule) {
    EXPECT_TRUE(Validate(rule).ok()) << base::Message(Validate(rule));
    const auto result = Judge(rule);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(NameOf(result->finding), "unknown");
    return Remark(*result);
  };
  PeerRule rule = Pattern("fuse");
  rule.source[1].type = PeerType::kBatchNorm;
  EXPECT_EQ(judged(rule), "OP_BATCHNORM has no counterpart here");
  rule = Pattern("fuse");
  for (auto* side : {&rule.source, &rule.target}) (*side)[0].parameters[PeerKey::kStrideH] = 3;
  EXPECT_THAT(judged(rule), HasSubstr("SAME padding for a kernel of 3 and a stride of 3"));
  rule = Pattern("fuse");
  for (auto* side : {&rule.source, &rule.target}) (*side)[0].parameters[PeerKey::kKernelH] = 2;
  EXPECT_THAT(judged(rule), HasSubstr("SAME padding for a kernel of 2"));
  rule = Pattern("fuse");
  for (auto* side : {&rule.source, &rule.target}) (*side)[0].parameters[PeerKey::kActivation] = 7;
  EXPECT_THAT(judged(rule), HasSubstr("activation"));
  rule = Pattern("relus");
  for (auto* side : {&rule.source, &rule.target}) {
    for (PeerOperator& op : *side) op.parameters.erase(PeerKey::kAxis);
  }
  EXPECT_THAT(judged(rule), HasSubstr("axis"));
  rule = Pattern("relus");
  rule.target[0].parameters[PeerKey::kAxis] = 2'000'000'000;
  EXPECT_THAT(judged(rule), HasSubstr("axis"));
  rule = Pattern("relus");
  rule.target[0].parameters[PeerKey::kRank] = 2'000'000'000;
  EXPECT_THAT(judged(rule), HasSubstr("axes"));
  rule = Pattern("transposed");
  rule.source[1].parameters[PeerKey::kPermutation] = 3;
  EXPECT_THAT(judged(rule), HasSubstr("3 is no permutation of 2 axes"));
  rule = Pattern("fuse");
  for (auto* side : {&rule.source, &rule.target}) (*side)[0].inputs.pop_back();
  EXPECT_THAT(judged(rule), HasSubstr("with 1 operands"));
}

// What `-o` writes is what `tenon prove` finds again.
TEST(JudgeTest, RuleTextHasTheVerdicts) {
  std::vector<JudgedRule> all;
  for (const PeerRule& rule : Patterns()) all.push_back({rule, *Judge(rule)});
  const auto parsed = rules::ParseRules(RuleText(all), "out.rules");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_GE(parsed->size(), 40u);
  for (const rules::ParsedRule& p : *parsed) {
    EXPECT_NE(p.expect, rules::Expect::kNone);
    const auto kind =
        p.rule.ok() ? verifier::Prove(*p.rule, {})->kind : verifier::VerdictKind::kIllFormed;
    EXPECT_TRUE(verifier::Meets(p.expect, kind)) << p.name << ": " << verifier::NameOf(kind);
  }
}

}  // namespace
}  // namespace tenon::interop
