// Merging packs: what is repeated, what others derive, what stays.
#include "coordinator/publish/merge.h"

#include <gtest/gtest.h>

#include "coordinator/publish/packed.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"

namespace tenon::publish {
namespace {

rules::Rule Parse(const std::string& text) {
  auto rule = rules::ParseRule("rule r " + text);
  EXPECT_TRUE(rule.ok()) << text << ": " << base::Message(rule.status());
  return *std::move(rule);
}
pack::Content Of(const std::vector<std::string>& texts, const std::string& certificate) {
  std::vector<rules::Rule> all;
  for (const std::string& text : texts) all.push_back(Parse(text));
  pack::Content content;
  content.universe = "name: \"u\"\n";
  content.max_operators = 2;
  content.counts = {{1, 2}, 1, 1, 1, 1, 0, 0, 1, 0};
  content.rules = *Packed(std::move(all));
  for (pack::PackedRule& r : content.rules) r.certificate = certificate;
  return content;
}
bool Contains(const pack::Content& content, const std::string& text) {
  const std::string bytes = *rules::CanonicalBytes(Parse(text));
  return std::any_of(content.rules.begin(), content.rules.end(), [&](const pack::PackedRule& p) {
    return *rules::CanonicalBytes(p.rule) == bytes;
  });
}
Merged MergeTwo(const pack::Content& a, const pack::Content& b) {
  const MergeInput inputs[] = {{"a@1.0.0", a}, {"b@1.0.0", b}};
  auto merged = Merge(inputs, [](std::size_t, std::size_t) { return true; });
  EXPECT_TRUE(merged.ok()) << base::Message(merged.status());
  return *std::move(merged);
}

const char kRelu[] = "given a[m,n] source Relu(Relu(a)) target Relu(a)";
const char kRelu3[] = "given a[l,m,n] source Relu(Relu(a)) target Relu(a)";
const char kAdd[] =
    "given a[m,n] b[m,n] c[m,n] source Add(Add(a, b), c) target Add(b, Add(a, c)) both";
const char kAddOfFour[] =
    "given a[m,n] b[m,n] c[m,n] d[m,n] source Add(Add(Add(a, b), c), d) target "
    "Add(c, Add(b, Add(a, d)))";
const char kSplit[] = "given a[m,n] b[m,n] source Split(Concat(a, b)) target a";
const char kTwo[] =
    "given a[m,n] b[m,n] source Relu(a), Relu(b) target Split(Relu(Concat(a, b))), "
    "Split(Relu(Concat(a, b)), index=1)";

TEST(MergeTest, CorrectedRulesStayMarked) {
  pack::Content first = Of({kRelu, kAdd}, "first");
  for (pack::PackedRule& p : first.rules) {
    p.corrected = p.rule.graph.OperatorCount(p.rule.source) == 2 && p.rule.both;
  }
  const Merged m = MergeTwo(first, Of({kRelu, kSplit}, "second"));
  ASSERT_EQ(m.content.rules.size(), 3u);
  for (const pack::PackedRule& p : m.content.rules) EXPECT_EQ(p.corrected, p.rule.both);
}

TEST(MergeTest, WhatIsRepeatedIsThereOnceAndWhatOthersDeriveIsNot) {
  const Merged m = MergeTwo(Of({kRelu, kAddOfFour}, "first"), Of({kRelu, kAdd, kSplit}, "second"));
  EXPECT_EQ(m.repeated, 1u);
  EXPECT_EQ(m.derived, 1u);
  EXPECT_EQ(m.content.rules.size(), 3u);
  for (const char* text : {kRelu, kAdd, kSplit}) EXPECT_TRUE(Contains(m.content, text)) << text;
  for (const pack::PackedRule& p : m.content.rules) {
    EXPECT_EQ(p.certificate, p.rule.name == "relu__relu" ? "first" : "second") << p.rule.name;
  }
  EXPECT_EQ(m.content.counts, (pack::Counts{{2, 4}, 2, 2, 2, 2, 0, 0, 2, 0}));
  EXPECT_EQ(m.content.universe,
            "# a@1.0.0, to 2 operators\nname: \"u\"\n\n# b@1.0.0, to 2 operators\nname: \"u\"\n");
  EXPECT_TRUE(pack::EncodeContent(m.content).ok());
}

TEST(MergeTest, TheOrderOfPacksChangesNoRule) {
  const pack::Content a = Of({kRelu, kAddOfFour}, "x"), b = Of({kAdd, kSplit, kTwo}, "x");
  Merged one = MergeTwo(a, b), other = MergeTwo(b, a);
  other.content.universe = one.content.universe;
  EXPECT_EQ(*pack::EncodeContent(one.content), *pack::EncodeContent(other.content));
}

TEST(MergeTest, FormsFromDifferentPacksAreOneFamily) {
  const Merged m = MergeTwo(Of({kRelu}, "x"), Of({kRelu3}, "x"));
  ASSERT_EQ(m.content.rules.size(), 2u);
  EXPECT_EQ(pack::FamilyCount(m.content), 1u);
  EXPECT_EQ(m.content.rules[1].form_of, m.content.rules[0].rule.name);
}

// Searches find them by their source, though the e-graph that holds their target derives them.
TEST(MergeTest, RulesWithSeveralOutputsStay) {
  const char both[] =
      "given a[m,n] b[m,n] source Concat(Relu(a), Relu(b)) target "
      "Relu(Concat(a, b)) both";
  const char second[] = "given a[m,n] b[m,n] source Split(Concat(a, b), index=1) target b";
  const Merged m = MergeTwo(Of({both, kSplit, second}, "x"), Of({kTwo}, "x"));
  EXPECT_TRUE(Contains(m.content, kTwo));
}

TEST(MergeTest, ErrorsAndInterruptionsEndIt) {
  const auto go_on = [](std::size_t, std::size_t) { return true; };
  EXPECT_EQ(Merge({}, go_on).status().code(), absl::StatusCode::kInvalidArgument);
  pack::Content old = Of({kRelu}, "x");
  --old.semantics;
  const MergeInput inputs[] = {{"old@1.0.0", old}};
  EXPECT_EQ(Merge(inputs, go_on).status().code(), absl::StatusCode::kFailedPrecondition);
  const pack::Content now = Of({kRelu}, "x");
  const MergeInput again[] = {{"now@1.0.0", now}};
  EXPECT_EQ(Merge(again, [](std::size_t, std::size_t) { return false; }).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tenon::publish
