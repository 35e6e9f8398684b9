// Pack contents: the test vector of docs/formats/pack.md, round trips, and damage.
#include "core/pack/pack.h"

#include <random>

#include <gtest/gtest.h>

#include "core/rules/canonical.h"
#include "core/rules/text.h"

namespace tenon::pack {
namespace {

rules::Rule Parse(const std::string& text, rules::FloatClass float_class) {
  auto rule = rules::ParseRule(text);
  EXPECT_TRUE(rule.ok()) << base::Message(rule.status());
  rule->float_class = float_class;
  return *std::move(rule);
}
Content Sample() {
  Content c;
  c.universe = "name: \"matrix\"\n";
  c.max_operators = 3;
  c.counts = {{42, 1116, 40278}, 14993, 92811, 40, 30, 5, 0, 92811, 0};
  c.rules.push_back({Parse("rule assoc given a[m,n] b[n,k] c[k,r] source MatMul(a, MatMul(b, c)) "
                           "target MatMul(MatMul(a, b), c) both",
                           rules::FloatClass::kFinite),
                     ""});
  c.rules.push_back({Parse("rule twice given a[m,n] source Transpose(Transpose(a)) target a",
                           rules::FloatClass::kExact),
                     "a certificate"});
  return c;
}

TEST(PackTest, VectorOfTheFormatDocument) {
  Content c;
  c.max_operators = 2;
  c.counts = {{1, 2}, 1, 1, 1, 1, 0, 0, 1, 0};
  c.rules.push_back({Parse("rule t given a[m,n] source Transpose(Transpose(a)) target a",
                           rules::FloatClass::kExact),
                     ""});
  const std::string expected(
      "\x02\x02\x00\x0a"
      "exhaustive"
      "\x02\x02\x01\x02\x01\x01\x01\x01\x00\x00\x01\x00\x01"
      "\x1f\x01\x01\x02\x01\x01\x01\x01\x01\x02\x01\x02\x01\x01\x01\x02\x01\x02\x02\x14\x00\x01"
      "\x00\x14\x00\x01\x01\x02\x02\x00\x00\x00\x01t\x01\x00\x00",
      14 + 13 + 32 + 5);
  const auto bytes = EncodeContent(c);
  ASSERT_TRUE(bytes.ok()) << base::Message(bytes.status());
  EXPECT_EQ(*bytes, expected);
}

TEST(PackTest, DecodingGivesBackWhatWasEncodedInCanonicalOrder) {
  const std::string bytes = *EncodeContent(Sample());
  const auto again = DecodeContent(bytes);
  ASSERT_TRUE(again.ok()) << base::Message(again.status());
  EXPECT_EQ(again->universe, Sample().universe);
  EXPECT_EQ(again->counts, Sample().counts);
  ASSERT_EQ(again->rules.size(), 2u);
  EXPECT_EQ(again->rules[0].rule.name, "twice");
  EXPECT_EQ(again->rules[0].rule.float_class, rules::FloatClass::kExact);
  EXPECT_EQ(again->rules[0].certificate, "a certificate");
  EXPECT_EQ(again->rules[1].rule.name, "assoc");
  EXPECT_EQ(*EncodeContent(*again), bytes);
}

TEST(PackTest, RulesThatAreEqualOrShareANameAreRefused) {
  Content c = Sample();
  c.rules.push_back({Parse("rule other given x[p,q] source Transpose(Transpose(x)) target x",
                           rules::FloatClass::kExact),
                     ""});
  EXPECT_FALSE(EncodeContent(c).ok());
  c.rules.back() = {Parse("rule assoc given x[p,q] source Relu(Relu(x)) target Relu(x)",
                          rules::FloatClass::kExact),
                    ""};
  EXPECT_FALSE(EncodeContent(c).ok());
  c.rules.back().rule.name = "";
  EXPECT_FALSE(EncodeContent(c).ok());
  c.rules.back().rule.name = "relu";
  EXPECT_TRUE(EncodeContent(c).ok());
}

TEST(PackTest, FormsBelongToRulesThatStandForThemselves) {
  Content c = Sample();
  c.rules.push_back({Parse("rule batched given a[l,m,n] b[n,k] c[k,r] source "
                           "MatMul(a, MatMul(b, c)) target MatMul(MatMul(a, b), c) both",
                           rules::FloatClass::kFinite),
                     "", "assoc"});
  EXPECT_EQ(FamilyCount(c), 2u);
  const std::string bytes = *EncodeContent(c);
  const auto again = DecodeContent(bytes);
  ASSERT_TRUE(again.ok()) << base::Message(again.status());
  EXPECT_EQ(again->rules[2].rule.name, "batched");
  EXPECT_EQ(again->rules[2].form_of, "assoc");
  EXPECT_EQ(again->rules[1].form_of, "");
  EXPECT_EQ(*EncodeContent(*again), bytes);
  // The view says so, behind the rule itself.
  const std::string view = TextView(*again, "pack x 1.0.0");
  EXPECT_NE(view.find("2 rules in 3 forms"), view.npos);
  EXPECT_LT(view.find("rule assoc"), view.find("a form of assoc"));

  for (const char* lost : {"nothing", "batched"}) {
    c.rules.back().form_of = lost;
    EXPECT_FALSE(EncodeContent(c).ok()) << lost;
    // The same bytes with another name in them.
    std::string other = bytes;
    const std::size_t at = other.rfind("assoc");
    other.replace(at - 1, 6, std::string(1, char(std::string(lost).size())) + lost);
    EXPECT_FALSE(DecodeContent(other).ok()) << lost;
  }
}

TEST(PackTest, CorrectedRulesAreMarkedAndTheOthersCostNoByte) {
  const std::string plain = *EncodeContent(Sample());
  Content c = Sample();
  c.rules[0].corrected = true;  // assoc, the second in canonical order
  const std::string marked = *EncodeContent(c);
  EXPECT_EQ(marked, plain + std::string("\x01\x01", 2));
  const auto again = DecodeContent(marked);
  ASSERT_TRUE(again.ok()) << base::Message(again.status());
  EXPECT_FALSE(again->rules[0].corrected);
  EXPECT_TRUE(again->rules[1].corrected);
  EXPECT_EQ(*EncodeContent(*again), marked);
  EXPECT_NE(TextView(*again, "pack x 1.0.0").find(", corrected\nrule assoc"), std::string::npos);
  // None, one too many, a number too large, not ascending, twice, cut off.
  for (const std::string& bad :
       {std::string("\0", 1), std::string("\x03\0\x01\x02", 4), std::string("\x01\x02"),
        std::string("\x02\x01\0", 3), std::string("\x02\x01\x01"), std::string("\x02\x01")}) {
    EXPECT_EQ(DecodeContent(plain + bad).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(PackTest, AnotherSemanticsVersionIsRefusedByThatName) {
  Content c = Sample();
  c.semantics = kSemanticsVersion + 1;
  const auto again = DecodeContent(*EncodeContent(c));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PackTest, CutOrChangedBytesNeverCrashAndNeverGiveOtherBytes) {
  const std::string bytes = *EncodeContent(Sample());
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    EXPECT_FALSE(DecodeContent(std::string_view(bytes).substr(0, k)).ok());
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = bytes;
      other[k] = static_cast<char>(other[k] ^ (1 << bit));
      const auto content = DecodeContent(other);
      if (content.ok()) {
        EXPECT_EQ(*EncodeContent(*content), other);
      }
    }
  }
  EXPECT_FALSE(DecodeContent(bytes + "x").ok());
  // Hostile lengths.
  for (const char* text :
       {"\x02\x02\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x02\x02\x00\x0a", ""}) {
    EXPECT_FALSE(DecodeContent(text).ok());
  }
}

TEST(PackTest, TheTextViewReadsBackToTheSameRules) {
  const Content c = *DecodeContent(*EncodeContent(Sample()));
  const auto parsed = rules::ParseRules(TextView(c, "pack x 1.0.0"), "view");
  ASSERT_TRUE(parsed.ok()) << base::Message(parsed.status());
  ASSERT_EQ(parsed->size(), c.rules.size());
  for (std::size_t k = 0; k < c.rules.size(); ++k) {
    ASSERT_TRUE((*parsed)[k].rule.ok());
    EXPECT_EQ((*parsed)[k].name, c.rules[k].rule.name);
    EXPECT_EQ((*parsed)[k].expect, rules::Expect::kProved);
    EXPECT_EQ(*rules::CanonicalBytes(*(*parsed)[k].rule), *rules::CanonicalBytes(c.rules[k].rule));
  }
}

TEST(PackTest, ProvenanceRoundTrip) {
  const Provenance p{"job-7", "0.1.0", 1700000000};
  const auto again = DecodeProvenance(EncodeProvenance(p));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, p);
  EXPECT_FALSE(DecodeProvenance(EncodeProvenance(p) + "x").ok());
  EXPECT_FALSE(DecodeProvenance("").ok());
}

TEST(PackTest, Versions) {
  EXPECT_EQ(*ParseVersion("1.20.3"), (Version{1, 20, 3}));
  EXPECT_EQ(ToString(Version{1, 20, 3}), "1.20.3");
  EXPECT_LT((Version{1, 9, 0}), (Version{1, 10, 0}));
  for (const char* bad : {"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "-1.2.3", "1.2.3 ", "1..3",
                          "99999999999.0.0", "v1.2.3"}) {
    EXPECT_FALSE(ParseVersion(bad).ok()) << bad;
  }
  EXPECT_TRUE(IsPackName("matrix-3_x"));
  for (const char* bad : {"", "3d", "A", "a b", "../x", "a.b"})
    EXPECT_FALSE(IsPackName(bad)) << bad;
}

}  // namespace
}  // namespace tenon::pack
