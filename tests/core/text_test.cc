// The rule text both ways.
#include "core/rules/text.h"

#include <gtest/gtest.h>

namespace tenon::rules {
namespace {

constexpr const char* kExample = R"(
# Concatenation before a product equals products before concatenation.
rule concat_matmul
given   a[m,k] b[n,k] c[k,p]
source  MatMul(Concat(a, b, axis=0), c)
target  Concat(MatMul(a, c), MatMul(b, c), axis=0)
where   m >= 1
both
expect  proved
)";

TEST(RuleTextTest, TheDesignsExampleReads) {
  const auto rule = ParseRule(kExample);
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->name, "concat_matmul");
  EXPECT_EQ(rule->expect, Expect::kProved);
  EXPECT_TRUE(rule->both);
  ASSERT_EQ(rule->source.size(), 1u);
  EXPECT_EQ(PrintTerm(rule->graph, rule->source[0]), "MatMul(Concat(a, b), c)");
  EXPECT_EQ(rule->graph.symbols().Print(rule->graph.shape(rule->source[0])[0]), "n+m");
}

TEST(RuleTextTest, PrintedRulesReadBackToTheSameText) {
  for (const char* text : {
           kExample,
           "rule r1 attr a >= 0, b >= a given x[N,C,H,W] weight w[F,C,2*a+1,2*a+1] "
           "source Conv(x, w, pads=[a,a,a,a]) "
           "target Conv(x, Enlarge(w, kernel_shape=[2*b+1,2*b+1]), pads=[b,b,b,b])",
           "rule r2 given x[n,n] scalar s source Mul(x, s), Relu(x) target Mul(x, s), Relu(x)",
           "rule r3 attr h >= 1 given x[a,b] where b > h and b mod 2 = 0 source "
           "Concat(Slice(x, axis=1, start=0, end=h), Slice(x, axis=1, start=h, end=b), axis=1) "
           "target x expect not-proved",
           "rule r4 given x[a] source Add(x, Fill(shape=[a], value=-0.5)) target x",
           "rule r5 given x[N,C,H,W] r[N,F,H,W] weight w[F,C,1,1] b[F] source "
           "Conv(x, w, b, r, residual=1, activation=relu) target "
           "Relu(Add(Conv(x, w, b), r))",
       }) {
    const auto rule = ParseRule(text);
    ASSERT_TRUE(rule.ok()) << text << "\n" << rule.status();
    const std::string printed = PrintRule(*rule);
    const auto again = ParseRule(printed);
    ASSERT_TRUE(again.ok()) << printed << "\n" << again.status();
    EXPECT_EQ(PrintRule(*again), printed);
  }
}

TEST(RuleTextTest, EqualTermsAreOneNode) {
  const auto rule =
      ParseRule("rule r given a[n,n] source Add(Relu(a), Relu(a)) target Add(Relu(a), Relu(a))");
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->source, rule->target);
  EXPECT_EQ(rule->graph.size(), 3u);
}

TEST(RuleTextTest, ATermThatDoesNotFitMakesOnlyItsRuleIllFormed) {
  const auto rules = ParseRules(
      "rule bad given a[2,3] b[4,5] source MatMul(a, b) target a expect ill-formed\n"
      "rule good given a[n,m] source Relu(Relu(a)) target Relu(a)",
      "f.rules");
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_FALSE((*rules)[0].rule.ok());
  EXPECT_EQ((*rules)[0].expect, Expect::kIllFormed);
  EXPECT_TRUE((*rules)[1].rule.ok()) << (*rules)[1].rule.status();
}

TEST(RuleTextTest, ErrorsNameFileLineAndColumn) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"rule r given a[n] source Foo(a) target a", "f:1:26: no operator is called Foo"},
           Case{"rule r\ngiven a[n]\nsource b target a", "f:3:8: no input is called b"},
           Case{"rule r given a[n] source a", "f:1: rule r has no target"},
           Case{"rule r given a[n] source Relu(a, axis=1) target a",
                "f:1:34: operator Relu has no attribute 'axis'"},
           Case{"rule r given a[n] source Softmax(a, axis=q) target a",
                "f:1:42: q is neither in the shape of an input nor declared by attr"},
           Case{"rule r given a[n] a[m] source a target a", "f:1:19: input a is declared twice"},
           Case{"rule r given a[n] source a target a rule r given a[n] source a target a",
                "f:1: a second rule is called r"},
           Case{"rule r given a[99999999999999999999] source a target a",
                "f:1:16: a number is too large, at '99999999999999999999'"},
           Case{"rule r given a[0] source a target a", "f:1:17: an extent below 1, at ']'"},
           Case{"nonsense", "f:1:1: expected 'rule', at 'nonsense'"},
           Case{"rule r given a[n] source a;", "f:1:27: unexpected character ';'"},
           Case{"rule r given a[n] source Conv(a, activation=gelu) target a",
                "f:1:45: expected none, relu, sigmoid or tanh, at 'gelu'"},
           // A divisor of 0 would have no meaning, and a negative one another than the prover's.
           Case{
               "rule r given a[n] attr k source Slice(a, axis=0, start=0, end=div(n, k)) target a",
               "f:1:70: a division by what may be 0 or less; say in `where` that it is at least 1"},
           Case{
               "rule r given a[n] attr k >= 0 source a target a where n mod k = 0",
               "f:1:61: a division by what may be 0 or less; say in `where` that it is at least 1"},
       }) {
    const auto rules = ParseRules(c.text, "f");
    ASSERT_FALSE(rules.ok()) << c.text;
    EXPECT_EQ(std::string(rules.status().message().data(), rules.status().message().size()),
              c.message);
  }
}

TEST(RuleTextTest, DivisorsArePositiveByDimsBoundsOrTheSource) {
  for (const char* text : {
           "rule r given a[n,m] source a target a where div(n, m) >= 1",
           "rule r given a[n,m] source a target a where n mod (m+2) = 0",
           "rule r given a[n] attr k >= 1 source a target a where n mod k = 0",
           "rule r given a[n] attr k source a target a where n mod k = 0, k > 0",
           "rule r given a[n,c,h,w] b[f,c,r,s] attr k source Conv(a, b, strides=[k,k]) "
           "target Conv(a, b, strides=[k,k]) where h mod k = 0",
       }) {
    const auto rules = ParseRules(text, "f");
    EXPECT_TRUE(rules.ok() && (*rules)[0].rule.ok()) << text << rules.status();
  }
}

TEST(RuleTextTest, DeepNestingIsAnErrorAndNotACrash) {
  std::string text = "rule r given a[n] source ";
  for (int k = 0; k < 100000; ++k) text += "Relu(";
  EXPECT_FALSE(ParseRules(text, "f").ok());
  text = "rule r given a[";
  for (int k = 0; k < 100000; ++k) text += "(";
  EXPECT_FALSE(ParseRules(text, "f").ok());
  text = "rule r given a[";
  for (int k = 0; k < 100000; ++k) text += "-";
  EXPECT_FALSE(ParseRules(text, "f").ok());
}

}  // namespace
}  // namespace tenon::rules
