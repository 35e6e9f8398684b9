#include "core/rules/rank.h"

#include <gtest/gtest.h>

#include "core/rules/canonical.h"
#include "core/rules/text.h"

namespace tenon::rules {
namespace {

Rule Parse(const std::string& text) {
  auto rule = ParseRule("rule r " + text);
  EXPECT_TRUE(rule.ok()) << text << ": " << base::Message(rule.status());
  return *std::move(rule);
}
void ExpectHigher(const std::string& rule, const std::string& higher) {
  auto out = OneRankHigher(Parse(rule));
  ASSERT_TRUE(out.has_value()) << rule;
  out->name = "out";
  EXPECT_EQ(*CanonicalBytes(*out), *CanonicalBytes(Parse(higher))) << PrintRule(*out);
}

TEST(RankTest, ActivationsGetABatchAndWeightsDoNot) {
  ExpectHigher(
      "given a[m,n] b[n,k] c[k,r] source MatMul(a, MatMul(b, c)) target MatMul(MatMul(a, b), c) "
      "both",
      "given a[l,m,n] b[n,k] c[k,r] source MatMul(a, MatMul(b, c)) "
      "target MatMul(MatMul(a, b), c) both");
  ExpectHigher(
      "given a[m,n] b[n,k] c[m,n] source MatMul(Add(a, c), b) "
      "target Add(MatMul(a, b), MatMul(c, b)) both",
      "given a[l,m,n] b[n,k] c[l,m,n] source MatMul(Add(a, c), b) "
      "target Add(MatMul(a, b), MatMul(c, b)) both");
}

TEST(RankTest, AxesAndPermutationsFollow) {
  ExpectHigher(
      "given a[m,n] b[n,k] c[n,r] source MatMul(a, b), MatMul(a, c) "
      "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, end=k), "
      "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=k, end=k+r)",
      "given a[l,m,n] b[n,k] c[n,r] source MatMul(a, b), MatMul(a, c) "
      "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=2, end=k), "
      "Slice(MatMul(a, Concat(b, c, axis=1)), axis=2, start=k, end=k+r)");
  // Both factors lie on a left way, one on each side.
  ExpectHigher(
      "given a[m,k] b[k,n] source Transpose(MatMul(a, b)) "
      "target MatMul(Transpose(b), Transpose(a)) both",
      "given a[l,m,k] b[l,k,n] source Transpose(MatMul(a, b), perm=[0,2,1]) "
      "target MatMul(Transpose(b, perm=[0,2,1]), Transpose(a, perm=[0,2,1])) both");
}

TEST(RankTest, WhatHasNoHigherFormHasNone) {
  EXPECT_FALSE(OneRankHigher(Parse("given a[m,n] source Relu(Relu(a)) target Relu(a)")));
  EXPECT_FALSE(
      OneRankHigher(Parse("given a[m,n] b[n,k] source Reshape(MatMul(a, b), shape=[m*k]) "
                          "target Reshape(MatMul(a, b), shape=[m*k])")));
}

}  // namespace
}  // namespace tenon::rules
