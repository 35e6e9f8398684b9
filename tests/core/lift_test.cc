// Lifting concrete equal pairs: which rule comes out first, and that every form is true and covers
// what it came from.
#include "core/rules/lift.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/rules/canonical.h"
#include "core/rules/complete.h"
#include "core/rules/instance.h"
#include "core/rules/text.h"

namespace tenon::rules {
namespace {

Rule Parse(const std::string& text) {
  auto rule = ParseRule("rule r " + text);
  EXPECT_TRUE(rule.ok()) << text << ": " << base::Message(rule.status());
  return *std::move(rule);
}
std::vector<Rule> LiftPair(const std::string& text) {
  const Rule pair = Parse(text);
  return Lift(pair.graph, pair.source[0], pair.target[0]);
}
std::string Text(Rule rule) {
  rule.name = "r";
  return PrintRule(rule);
}

struct Case {
  const char* pair;
  const char* general;  // The first form.
};

const Case kCases[] = {
    {"given a[4,4] b[4,4] c[4,4] source MatMul(a, MatMul(b, c)) target MatMul(MatMul(a, b), c)",
     "given a[m,n] b[n,k] c[k,r] source MatMul(a, MatMul(b, c)) target MatMul(MatMul(a, b), c) "
     "both"},
    // To a bare input, and not back.
    {"given a[4,4] source Transpose(Transpose(a)) target a",
     "given a[m,n] source Transpose(Transpose(a)) target a"},
    // A common subterm is a variable.
    {"given a[4,4] source Transpose(Transpose(Relu(a))) target Relu(a)",
     "given a[m,n] source Transpose(Transpose(a)) target a"},
    // Two variables show a rule about three.
    {"given a[4,4] b[4,4] source MatMul(a, Concat(a, b, axis=1)) "
     "target Concat(MatMul(a, a), MatMul(a, b), axis=1)",
     "given a[m,n] b[n,k] c[n,r] source Concat(MatMul(a, b), MatMul(a, c), axis=1) "
     "target MatMul(a, Concat(b, c, axis=1)) both"},
    // It type-checks more generally than it holds: only the split at the same place is true.
    {"given a[4,4] b[4,4] c[4,4] source MatMul(Concat(a, b, axis=1), Transpose(Concat(a, c, "
     "axis=1))) "
     "target MatMul(Concat(b, a, axis=1), Transpose(Concat(c, a, axis=1)))",
     "given a[m,n] b[m,k] c[r,n] d[r,k] "
     "source MatMul(Concat(a, b, axis=1), Transpose(Concat(c, d, axis=1))) "
     "target MatMul(Concat(b, a, axis=1), Transpose(Concat(d, c, axis=1))) both"},
    // The sign of a sum of products; relu may not be split off.
    {"given a[4,4] source Relu(MatMul(Relu(a), Relu(a))) target MatMul(Relu(a), Relu(a))",
     "given a[m,n] b[n,k] source Relu(MatMul(Relu(a), Relu(b))) target MatMul(Relu(a), Relu(b)) "
     "both"},
    {"given a[4,4] source Add(Relu(a), Relu(a)) target Relu(Add(a, a))",
     "given a[m,n] source Add(Relu(a), Relu(a)) target Relu(Add(a, a)) both"},
    // An extent that is written as 1 and broadcast stays 1.
    {"given a[4,3] b[1,3] source Relu(Add(Relu(a), Relu(b))) target Add(Relu(a), Relu(b))",
     "given a[m,n] b[1,n] source Relu(Add(Relu(a), Relu(b))) target Add(Relu(a), Relu(b)) both"},
    // Attributes tied to extents.
    {"given a[4,3] b[4,5] source Slice(Concat(a, b, axis=1), axis=1, start=3, end=8) target b",
     "given a[m,n] b[m,k] source Slice(Concat(a, b, axis=1), axis=1, start=n, end=n+k) target b"},
    {"given a[4,4] source MatMul(a, Eye(size=4)) target a",
     "given a[m,n] source MatMul(a, Eye(size=n)) target a"},
    // Any stride, padding, dilation and kernel.
    {"given x[2,3,5,5] w[4,3,3,3] v[2,3,3,3] "
     "source Concat(Conv(x, w, pads=[1,1,1,1]), Conv(x, v, pads=[1,1,1,1]), axis=1) "
     "target Conv(x, Concat(w, v, axis=0), pads=[1,1,1,1])",
     "given x[n,c,h,w] a[f,c,i,j] b[g,c,i,j] attr s, t, p, q, r, u, d, e "
     "source Concat(Conv(x, a, strides=[s,t], pads=[p,q,r,u], dilations=[d,e]), "
     "Conv(x, b, strides=[s,t], pads=[p,q,r,u], dilations=[d,e]), axis=1) "
     "target Conv(x, Concat(a, b, axis=0), strides=[s,t], pads=[p,q,r,u], dilations=[d,e]) both"},
    // The padding follows the kernel.
    {"given x[1,2,5,5] w[3,2,1,1] source Conv(x, w) "
     "target Conv(x, Enlarge(w, kernel_shape=[3,3]), pads=[1,1,1,1])",
     "given x[n,c,h,w] a[f,c,1,1] attr s, t, p, q, r, u, d, e "
     "source Conv(x, Enlarge(a, kernel_shape=[3,3]), strides=[s,t], pads=[p+d,q+e,r+d,u+e], "
     "dilations=[d,e]) target Conv(x, a, strides=[s,t], pads=[p,q,r,u], dilations=[d,e]) "
     "where p >= 0, q >= 0, r >= 0, u >= 0 both"},
    // What only the target requires becomes a condition.
    {"given x[1,2,5,5] source AveragePool(x, kernel_shape=[3,3], pads=[1,1,1,1], "
     "count_include_pad=1) "
     "target Conv(x, PoolKernel(channels=2, kernel_shape=[3,3]), pads=[1,1,1,1])",
     "given x[n,c,h,w] attr i, j, s, t, p, q, r, u "
     "source Conv(x, PoolKernel(channels=c, kernel_shape=[i,j]), strides=[s,t], pads=[p,q,r,u]) "
     "target AveragePool(x, kernel_shape=[i,j], strides=[s,t], pads=[p,q,r,u], "
     "count_include_pad=1) "
     "where i > p, i > r, j > q, j > u both"},
};

TEST(LiftTest, TheFirstFormIsTheGeneralRule) {
  for (const Case& c : kCases) {
    const std::vector<Rule> forms = LiftPair(c.pair);
    ASSERT_FALSE(forms.empty()) << c.pair;
    EXPECT_EQ(*CanonicalBytes(forms[0]), *CanonicalBytes(Parse(c.general))) << c.pair << "\n"
                                                                            << Text(forms[0]);
  }
}

TEST(LiftTest, EveryFormIsCanonicalAndTrueOnManyInstances) {
  Dice dice(77);
  for (const Case& c : kCases) {
    for (const Rule& form : LiftPair(c.pair)) {
      EXPECT_TRUE(LooksTrue(form, dice, 100)) << Text(form);
      const auto again = Canonical(form);
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(Text(*again), Text(form));
    }
  }
}

TEST(LiftTest, TheSameSeedGivesTheSameForms) {
  for (const Case& c : kCases) {
    const std::vector<Rule> one = LiftPair(c.pair), other = LiftPair(c.pair);
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t k = 0; k < one.size(); ++k) EXPECT_EQ(Text(one[k]), Text(other[k]));
  }
}

TEST(LiftTest, NothingToSay) {
  // Equal up to the order of commutative operands.
  EXPECT_TRUE(LiftPair("given a[4,4] b[4,4] source Add(a, b) target Add(b, a)").empty());
  // Not equal, or of another shape.
  EXPECT_TRUE(LiftPair("given a[4,4] b[4,4] source MatMul(a, b) target MatMul(b, a)").empty());
  EXPECT_TRUE(LiftPair("given a[4,3] source Transpose(a) target a").empty());
  // Neither side determines the other: 0 * a = 0 * b.
  EXPECT_TRUE(LiftPair("given a[4,4] b[4,4] source Mul(a, Fill(shape=[4,4], value=0)) "
                       "target Mul(b, Fill(shape=[4,4], value=0))")
                  .empty());
}

TEST(CompleteTest, OnlyWhatTheTargetStillNeedsBecomesACondition) {
  Rule rule = Parse(
      "given x[n,c,h,w] attr i, j, p source AveragePool(x, kernel_shape=[i,i], pads=[p,p,p,p]) "
      "target Relu(AveragePool(x, kernel_shape=[i,j], pads=[p,p,p,p]))");
  ASSERT_TRUE(Complete(rule));
  EXPECT_TRUE(rule.where.empty()) << Text(rule);  // j became i.
  Rule slice = Parse(
      "given x[m,n] attr e source Relu(Slice(x, axis=0, end=e)) target "
      "Slice(Relu(x), axis=0, end=e)");
  ASSERT_TRUE(Complete(slice));
  EXPECT_TRUE(slice.where.empty());
  EXPECT_TRUE(slice.both);
}

TEST(CompleteTest, ShapesThatCannotAgreeAreRefused) {
  Rule rank = Parse("given x[m,n] source Relu(x) target ReduceSum(x, axis=0, keepdims=0)");
  EXPECT_FALSE(Complete(rank));
  Rule extent = Parse("given x[m,n] source Concat(x, x, axis=0) target x");
  EXPECT_FALSE(Complete(extent));
}

}  // namespace
}  // namespace tenon::rules
