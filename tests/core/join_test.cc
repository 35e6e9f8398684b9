#include "core/rules/join.h"

#include <gtest/gtest.h>

#include "core/rules/canonical.h"
#include "core/rules/instance.h"
#include "core/rules/text.h"

namespace tenon::rules {
namespace {

Rule Parse(const std::string& text) {
  auto rule = ParseRule("rule r " + text);
  EXPECT_TRUE(rule.ok()) << text << ": " << base::Message(rule.status());
  return *std::move(rule);
}
std::string Text(Rule rule) {
  rule.name = "r";
  return PrintRule(rule);
}
void ExpectJoin(const std::string& rule, const std::string& join) {
  const std::vector<Rule> joins = Join(Parse(rule));
  ASSERT_EQ(joins.size(), 1u) << rule;
  EXPECT_EQ(*CanonicalBytes(joins[0]), *CanonicalBytes(Parse(join))) << Text(joins[0]);
  Dice dice(3);
  EXPECT_TRUE(LooksTrue(joins[0], dice, 50));
}

TEST(JoinTest, TwoProductsOfOneMatrixAreTheHalvesOfOne) {
  const std::string join =
      "given a[m,n] b[n,k] c[n,r] source MatMul(a, b), MatMul(a, c) "
      "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, end=k), "
      "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=k, end=k+r)";
  ExpectJoin(
      "given a[m,n] b[n,k] c[n,r] source Concat(MatMul(a, b), MatMul(a, c), axis=1) "
      "target MatMul(a, Concat(b, c, axis=1)) both",
      join);
  ExpectJoin(
      "given a[m,n] b[n,k] c[n,r] source MatMul(a, Concat(b, c, axis=1)) "
      "target Concat(MatMul(a, b), MatMul(a, c), axis=1)",
      join);
}

TEST(JoinTest, TwoConvolutionsOfOneImageAreTheChannelsOfOne) {
  ExpectJoin(
      "given x[n,c,h,w] a[f,c,i,j] b[g,c,i,j] attr s, p source "
      "Concat(Conv(x, a, strides=[s,s], pads=[p,p,p,p]), Conv(x, b, strides=[s,s], "
      "pads=[p,p,p,p]), "
      "axis=1) target Conv(x, Concat(a, b, axis=0), strides=[s,s], pads=[p,p,p,p])",
      "given x[n,c,h,w] a[f,c,i,j] b[g,c,i,j] attr s, p source "
      "Conv(x, a, strides=[s,s], pads=[p,p,p,p]), Conv(x, b, strides=[s,s], pads=[p,p,p,p]) target "
      "Slice(Conv(x, Concat(a, b, axis=0), strides=[s,s], pads=[p,p,p,p]), axis=1, end=f), "
      "Slice(Conv(x, Concat(a, b, axis=0), strides=[s,s], pads=[p,p,p,p]), axis=1, start=f, "
      "end=f+g)");
}

TEST(JoinTest, ThreeParts) {
  ExpectJoin(
      "given a[m,n] b[n,k] c[n,r] d[n,s] source "
      "Concat(MatMul(a, b), MatMul(a, c), MatMul(a, d), axis=1) "
      "target MatMul(a, Concat(b, c, d, axis=1))",
      "given a[m,n] b[n,k] c[n,r] d[n,s] source MatMul(a, b), MatMul(a, c), MatMul(a, d) target "
      "Slice(MatMul(a, Concat(b, c, d, axis=1)), axis=1, end=k), "
      "Slice(MatMul(a, Concat(b, c, d, axis=1)), axis=1, start=k, end=k+r), "
      "Slice(MatMul(a, Concat(b, c, d, axis=1)), axis=1, start=k+r, end=k+r+s)");
}

TEST(JoinTest, WhatSavesNoReductionIsNotJoined) {
  EXPECT_TRUE(Join(Parse("given a[m,n] b[m,k] source Concat(Relu(a), Relu(b), axis=1) "
                         "target Relu(Concat(a, b, axis=1))"))
                  .empty());
  EXPECT_TRUE(Join(Parse("given a[m,n] b[m,k] c[n,r] d[k,r] source MatMul(Concat(a, b, axis=1), "
                         "Concat(c, d, axis=0)) target Add(MatMul(a, c), MatMul(b, d))"))
                  .empty());
  // A part that is a bare input would match everything.
  EXPECT_TRUE(Join(Parse("given a[m,n] b[n,n] source Concat(MatMul(a, b), a, axis=1) "
                         "target MatMul(a, Concat(b, Eye(size=n), axis=1))"))
                  .empty());
}

}  // namespace
}  // namespace tenon::rules
