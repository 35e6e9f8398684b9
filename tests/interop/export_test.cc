// Our rules in the formats of others: what is written means the same there, and what is left out is
// left out for a reason.
#include "interop/export_peer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "interop/egg.h"
#include "interop/flexflow_file.h"
#include "interop/judge.h"
#include "interop/report.h"
#include "interop/taso_file.h"
#include "interop/translate.h"
#include "tests/support/process.h"

namespace tenon::interop {
namespace {

using ::testing::HasSubstr;

std::vector<rules::Rule> RulesOf(const std::string& text) {
  std::vector<rules::Rule> out;
  const auto parsed = rules::ParseRules(text, "text");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  for (const rules::ParsedRule& p : *parsed) {
    EXPECT_TRUE(p.rule.ok()) << p.name;
    if (p.rule.ok()) out.push_back(*p.rule);
  }
  return out;
}

constexpr const char* kCarried = R"(
rule product
given   a[m,k] b[k,n] c[n,p]
source  MatMul(MatMul(a, b), c)
target  MatMul(a, MatMul(b, c))
both
rule batched
given   a[b,m,k] c[b,k,n] d[b,k,n]
source  MatMul(a, Add(c, d))
target  Add(MatMul(a, c), MatMul(a, d))
rule scaled
given   a[m,k] b[k,n]
scalar  s
source  Mul(s, MatMul(a, b))
target  MatMul(Mul(a, s), b)
rule turned
given   a[m,k] b[k,n]
source  Transpose(MatMul(a, b))
target  MatMul(Transpose(b), Transpose(a))
rule turned3
given   a[b,m,n]
source  Transpose(Relu(a), perm=[2,0,1])
target  Relu(Transpose(a, perm=[2,0,1]))
rule joined
given   a[m,k] b[m,l]
source  Relu(a), Relu(b)
target  Slice(Relu(Concat(a, b, axis=1)), axis=1, start=0, end=k),
        Slice(Relu(Concat(a, b, axis=1)), axis=1, start=k, end=k+l)
rule second_half
given   a[m,k] b[m,l]
source  Relu(Slice(Concat(a, b, axis=1), axis=1, start=k, end=k+l))
target  Relu(b)
rule fused
given   x[n,g*c,h,w] k[g*f,c,3,3]
source  Tanh(Conv(x, k, pads=[1,1,1,1], strides=[2,2], group=g))
target  Conv(x, k, pads=[1,1,1,1], strides=[2,2], group=g, activation=tanh)
both
rule valid
given   x[n,g*c,h,w] k[g*f,c,3,5] l[g*f,c,3,5]
source  Conv(x, Add(k, l), group=g)
target  Add(Conv(x, k, group=g), Conv(x, l, group=g))
rule pools
given   x[n,c,h,w] y[m,c,h,w]
source  Concat(MaxPool(x, kernel_shape=[3,3], pads=[1,1,1,1]),
               MaxPool(y, kernel_shape=[3,3], pads=[1,1,1,1]), axis=0)
target  MaxPool(Concat(x, y, axis=0), kernel_shape=[3,3], pads=[1,1,1,1])
rule average
given   x[n,c,h,w] y[m,c,h,w]
source  Concat(AveragePool(x, kernel_shape=[2,2], strides=[2,2]),
               AveragePool(y, kernel_shape=[2,2], strides=[2,2]), axis=0)
target  AveragePool(Concat(x, y, axis=0), kernel_shape=[2,2], strides=[2,2])
)";

// The form of a peer's rule that has the meaning of `rule`, among its ranks.
bool HasMeaning(const PeerRule& peer, const rules::Rule& rule) {
  auto translators = Translator::ForAllRanks(peer);
  EXPECT_TRUE(translators.ok()) << translators.status();
  if (!translators.ok()) return false;
  const auto bytes = rules::CanonicalBytes(rule);
  EXPECT_TRUE(bytes.ok());
  for (Translator& t : *translators) {
    const auto read = t.Build({});
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok()) continue;
    const auto own = rules::CanonicalBytes(*read);
    if (own.ok() && *own == *bytes) return true;
  }
  return false;
}

TEST(ExportTest, WhatIsWrittenIsReadBackAsTheSameRule) {
  const std::vector<rules::Rule> directions = Directions(RulesOf(kCarried));
  ASSERT_EQ(directions.size(), 13u);
  const auto exported = ExportToPeer(directions);
  ASSERT_TRUE(exported.ok()) << exported.status();
  for (const LeftOut& l : exported->left_out) ADD_FAILURE() << l.rule << ": " << l.reason;
  ASSERT_EQ(exported->rules.size(), directions.size());
  const auto taso = ReadTaso(WriteTaso(exported->rules), "a.pb");
  const auto flexflow = ReadFlexFlow(WriteFlexFlow(exported->rules), "a.json");
  ASSERT_TRUE(taso.ok()) << taso.status();
  ASSERT_TRUE(flexflow.ok()) << flexflow.status();
  ASSERT_EQ(taso->size(), directions.size());
  EXPECT_EQ(*flexflow, exported->rules);
  for (std::size_t k = 0; k < directions.size(); ++k) {
    EXPECT_TRUE(HasMeaning((*taso)[k], directions[k])) << rules::PrintRule(directions[k]);
    EXPECT_TRUE(HasMeaning((*flexflow)[k], directions[k])) << directions[k].name;
  }
}

TEST(ExportTest, WhatTheFormatCannotSayIsLeftOut) {
  const auto exported = ExportToPeer(Directions(RulesOf(R"(
rule one_group_only
given   x[n,c,h,w] k[f,c,3,3] l[e,c,3,3]
source  Concat(Conv(x, k), Conv(x, l), axis=1)
target  Conv(x, Concat(k, l, axis=0))
rule any_stride
given   x[n,c,h,w] k[f,c,3,3]
attr    s >= 1
source  Relu(Conv(x, k, strides=[s,s]))
target  Conv(x, k, strides=[s,s], activation=relu)
rule any_kernel
given   x[n,c,h,w] k[f,c,R,S]
source  Relu(Conv(x, k))
target  Conv(x, k, activation=relu)
rule odd_padding
given   x[n,c,h,w] k[f,c,3,3]
source  Relu(Conv(x, k, pads=[0,0,1,1]))
target  Conv(x, k, pads=[0,0,1,1], activation=relu)
rule exponents
given   a[m,n] b[m,n]
source  Mul(Exp(a), Exp(b))
target  Exp(Add(a, b))
rule spread
given   a[m,n] b[1,n]
source  Relu(Add(a, b))
target  Relu(Add(b, a))
rule back_and_forth
given   a[m,n]
source  Transpose(Transpose(a))
target  a
rule counted
given   x[n,c,h,w] y[m,c,h,w]
source  Concat(AveragePool(x, kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1),
               AveragePool(y, kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1), axis=0)
target  AveragePool(Concat(x, y, axis=0), kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1)
)")));
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_TRUE(exported->rules.empty());
  std::map<std::string, std::string> reasons;
  for (const LeftOut& l : exported->left_out) reasons[l.rule] = l.reason;
  const std::map<std::string, std::string> expected = {
      {"one_group_only", "the format cannot say what it needs: convolution 0 has one group"},
      {"any_stride", "a stride is symbolic"},
      {"any_kernel", "the kernel is symbolic"},
      {"odd_padding", "its padding is neither SAME nor VALID"},
      {"exponents", "Exp has no counterpart there"},
      {"spread", "it broadcasts"},
      {"back_and_forth", "one side is an input alone"},
      {"counted", "an average pool counts its padding"}};
  EXPECT_EQ(reasons, expected);
}

// Nothing that is not proved is written, whatever our rules are.
TEST(ExportTest, EveryRuleOfTheCorpusIsCarriedOrLeftOut) {
  std::size_t written = 0, left_out = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(TENON_SOURCE_DIR "/tests/rules/true")) {
    const auto parsed = rules::ParseRules(testing::ReadFile(entry.path()), "corpus");
    ASSERT_TRUE(parsed.ok());
    std::vector<rules::Rule> all;
    for (const rules::ParsedRule& p : *parsed) {
      if (p.rule.ok()) all.push_back(*p.rule);
    }
    const std::vector<rules::Rule> directions = Directions(all);
    const auto exported = ExportToPeer(directions);
    ASSERT_TRUE(exported.ok()) << exported.status();
    EXPECT_EQ(exported->rules.size() + exported->left_out.size(), directions.size());
    written += exported->rules.size();
    left_out += exported->left_out.size();
    for (const LeftOut& l : exported->left_out) EXPECT_FALSE(l.reason.empty()) << l.rule;
  }
  EXPECT_GT(written, 20u);
  EXPECT_GT(left_out, 20u);
}

std::string Egg(const std::string& text) {
  const auto egg = ToEgg(RulesOf(text)[0]);
  return egg.ok() ? *egg : "left out: " + base::Message(egg.status());
}

TEST(EggTest, PatternsSpellOperatorsAttributesAndRanks) {
  EXPECT_EQ(Egg("rule d given a[m,k] b[k,n] c[k,n] source MatMul(a, Add(b, c)) "
                "target Add(MatMul(a, b), MatMul(a, c))"),
            "rewrite!(\"d\"; \"(MatMul_2 ?a (Add_2 ?b ?c))\" => "
            "\"(Add_2 (MatMul_2 ?a ?b) (MatMul_2 ?a ?c))\")");
  EXPECT_EQ(Egg("rule c given a[m,k] b[m,l] source Relu(Concat(a, b, axis=1)) "
                "target Concat(Relu(a), Relu(b), axis=1)"),
            "rewrite!(\"c\"; \"(Relu_2 (Concat_2 1 ?a ?b))\" => "
            "\"(Concat_2 1 (Relu_2 ?a) (Relu_2 ?b))\")");
  EXPECT_EQ(Egg("rule t given a[m,k] source Transpose(Transpose(a)) target a"),
            "rewrite!(\"t\"; \"(Transpose_2 1 0 (Transpose_2 1 0 ?a))\" => \"?a\")");
  EXPECT_EQ(Egg("rule v given x[n,c,h,w] k[f,c,r,t] attr s >= 1, p >= 0 "
                "source Relu(Conv(x, k, strides=[s,1], pads=[p,0,p,0])) "
                "target Conv(x, k, strides=[s,1], pads=[p,0,p,0], activation=relu)"),
            "rewrite!(\"v\"; \"(Relu_4 (Conv_4 ?s 1 ?p 0 ?p 0 1 1 1 0 none ?x ?k))\" => "
            "\"(Conv_4 ?s 1 ?p 0 ?p 0 1 1 1 0 relu ?x ?k)\")");
}

TEST(EggTest, WhatNeedsExtentsIsLeftOut) {
  EXPECT_EQ(Egg("rule s given a[m,k] b[m,l] "
                "source Slice(Concat(a, b, axis=1), axis=1, start=0, end=k) target a"),
            "left out: an attribute is an extent, k");
  EXPECT_EQ(Egg("rule q given a[m,m] b[m,m] source Relu(MatMul(a, b)) target Relu(MatMul(a, b))"),
            "left out: it holds for special shapes, a[m,m]");
  EXPECT_EQ(Egg("rule e given x[n,c,h,w] k[f,c,1,1] source Conv(x, k) "
                "target Conv(x, Enlarge(k, kernel_shape=[3,3]), pads=[1,1,1,1])"),
            "left out: it holds for special shapes, k[f,c,1,1]");
  EXPECT_EQ(Egg("rule w given a[m,k] b[m,k] source Concat(a, b, axis=1) "
                "target Concat(a, b, axis=1) where m >= 2"),
            "left out: it needs m >= 2");
  EXPECT_EQ(Egg("rule o given a[m,k] source Relu(a), Tanh(a) target Relu(a), Tanh(a)"),
            "left out: it has several outputs");
  EXPECT_EQ(Egg("rule i given a[m,k] source a target Transpose(Transpose(a))"),
            "left out: it rewrites an input");
}

}  // namespace
}  // namespace tenon::interop
