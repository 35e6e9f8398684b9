// The float classes of rules that are true over the reals.
#include "core/rules/float_class.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/rules/text.h"
#include "tests/support/float_check.h"

namespace tenon::rules {
namespace {

FloatClass Of(const std::string& text) {
  const auto rule = ParseRule("rule r " + text);
  EXPECT_TRUE(rule.ok()) << text << ": " << base::Message(rule.status());
  const FloatClass found = FloatClassOf(*rule);
  const testing::FloatCheck check = testing::CheckFloats(*rule, found, 20);
  EXPECT_EQ(check.broken, "") << text;
  return found;
}

TEST(FloatClassTest, DataMovementIsExact) {
  const char* exact[] = {
      "given a[m,n] source Transpose(Transpose(a)) target a",
      "given a[m,n] b[m,k] source Relu(Concat(a, b, axis=1)) target Concat(Relu(a), Relu(b), "
      "axis=1)",
      "given a[m,n] b[m,k] source Slice(Concat(a, b, axis=1), axis=1, start=n, end=n+k) target b",
      "given a[m,n] b[m,n] source Transpose(Mul(a, b)) target Mul(Transpose(b), Transpose(a))",
      "given a[m,n] source Relu(Relu(a)) target Relu(a)",
      "given a[m,n] source Neg(Neg(a)) target a",
      "given a[m,n] b[m,n] source Sub(a, b) target Add(a, Neg(b))",
      "given a[m,n] b[m,n] source Mul(Neg(a), b) target Neg(Mul(a, b))",
      "given a[m,n] source Mul(a, Fill(shape=[m,n], value=1)) target a",
      "given a[m,n] source Tanh(Transpose(a)) target Transpose(Tanh(a))",
      "given a[f,c,1,1] b[f,c,1,1] source Add(Enlarge(a), Enlarge(b)) target Enlarge(Add(a, b))",
      "given x[n,c,h,w] y[m,c,h,w] source Concat(MaxPool(x, kernel_shape=[2,2]), "
      "MaxPool(y, kernel_shape=[2,2]), axis=0) target "
      "MaxPool(Concat(x, y, axis=0), kernel_shape=[2,2])",
      "given a[m,n] b[m,n] source Transpose(Max(a, b)) target Max(Transpose(a), Transpose(b))",
      "given a[m,n] b[m,n] source Transpose(Div(a, b)) target Div(Transpose(a), Transpose(b))",
      "given a[m,n] b[m,n] source Div(Neg(a), b) target Neg(Div(a, b))",
      "given a[m,n] b[m,n] source Min(a, b) target Neg(Max(Neg(a), Neg(b)))",
      "given a[m,n] source Div(Fill(shape=[1,1], value=1), a) target Reciprocal(a)",
      "given a[m,n] source Div(a, Fill(shape=[1,1], value=1)) target a",
      "given a[m,n] source Gelu(Transpose(a)) target Transpose(Gelu(a))",
      "given a[m,n] source Silu(a) target Mul(a, Sigmoid(a))",
      "given a[m,n] l[] h[] source Clip(a, l, h) target Min(Max(a, l), h)",
      "given a[m,n] b[k,n] source ReduceMax(Concat(a, b, axis=0), axis=1) target "
      "Concat(ReduceMax(a, axis=1), ReduceMax(b, axis=1), axis=0)",
  };
  for (const char* text : exact) EXPECT_EQ(Of(text), FloatClass::kExact) << text;
}

TEST(FloatClassTest, ReorderedArithmeticIsFinite) {
  const char* finite[] = {
      "given a[m,n] b[n,k] c[k,p] source MatMul(MatMul(a, b), c) target MatMul(a, MatMul(b, c))",
      "given a[m,n] b[m,n] c[m,n] source Add(a, Add(b, c)) target Add(Add(a, b), c)",
      "given a[m,n] b[m,n] c[m,n] source Mul(a, Mul(b, c)) target Mul(Mul(a, b), c)",
      "given a[m,n] b[n,k] c[n,k] source MatMul(a, Add(b, c)) target Add(MatMul(a, b), MatMul(a, "
      "c))",
      // The same sums, but a kernel may add in another order at another size.
      "given a[m,n] b[n,k] c[n,p] source Concat(MatMul(a, b), MatMul(a, c), axis=1) "
      "target MatMul(a, Concat(b, c, axis=1))",
      "given x[n,c,h,w] k[f,c,1,1] source Conv(x, k) "
      "target Conv(x, Enlarge(k, kernel_shape=[3,3]), pads=[1,1,1,1])",
      "given x[n,c,h,w] k[f,c,3,3] source Relu(Conv(x, k)) target Conv(x, k, activation=relu)",
      "given x[n,c,h,w] source AveragePool(x, kernel_shape=[3,3], pads=[1,1,1,1], "
      "count_include_pad=1) target Conv(x, PoolKernel(channels=c, kernel_shape=[3,3]), "
      "pads=[1,1,1,1])",
      "given a[m,n] b[m,n] source Softmax(Add(a, b), axis=1) target Softmax(Add(b, a), axis=1)",
      "given a[m,n] source Add(a, a) target Mul(a, Fill(shape=[m,n], value=2))",
      "given a[m,n] b[n,k] source Relu(MatMul(Relu(a), Relu(b))) target MatMul(Relu(a), Relu(b))",
      // One rounding or two.
      "given a[m,n] b[m,n] source Div(a, b) target Mul(a, Reciprocal(b))",
      "given a[m,n] b[m,n] c[m,1] source Div(Add(a, b), c) target Add(Div(a, c), Div(b, c))",
      // Zeros of different signs count as equal, and either may be the result.
      "given a[m,n] b[m,n] source Max(a, b) target Max(b, a)",
      "given a[m,n] source Max(a, Fill(shape=[], value=0)) target Relu(a)",
      "given x[n,c,h,w] source GlobalAveragePool(x) target "
      "ReduceMean(ReduceMean(x, axis=3), axis=2)",
      // Batch normalisation as a convolution's scale: the same reciprocals.
      "given x[n,c,h,w] s[c] b[c] mean[c] var[c] source "
      "BatchNormalization(Add(x, x), s, b, mean, var) target "
      "Add(BatchNormalization(x, s, b, mean, var), "
      "Sub(BatchNormalization(x, s, b, mean, var), BatchNormalization(Sub(x, x), s, b, mean, "
      "var)))",
  };
  // Numbers of one sign do not cancel.
  EXPECT_EQ(
      Of("given a[m,n] b[m,n] source Reciprocal(ReduceSum(Exp(Concat(a, b, axis=1)), axis=1)) "
         "target Reciprocal(Add(ReduceSum(Exp(a), axis=1), ReduceSum(Exp(b), axis=1)))"),
      FloatClass::kFinite);
  for (const char* text : finite) EXPECT_EQ(Of(text), FloatClass::kFinite) << text;
}

TEST(FloatClassTest, WhatRemovesAnOperationOrAnInputIsDomain) {
  const char* domain[] = {
      "given a[m,n] source Add(a, Fill(shape=[m,n], value=0)) target a",
      "given a[m,n] source Mul(a, Fill(shape=[m,n], value=0)) target Fill(shape=[m,n], value=0)",
      "given a[m,n] b[m,n] source Sub(Add(a, b), b) target a",
      "given a[m,n] source Sub(a, a) target Fill(shape=[m,n], value=0)",
      "given a[m,n] source MatMul(a, Eye(size=n)) target a",
      "given a[m,n] b[m,n] source Mul(Exp(a), Exp(b)) target Exp(Add(a, b))",
      "given a[m,n] source Reciprocal(Reciprocal(a)) target a",
      "given a[m,n] b[m,1] source Softmax(Add(a, b), axis=1) target Softmax(a, axis=1)",
      "given a[m,n] b[m,n] source Mul(Reciprocal(a), Reciprocal(b)) target Reciprocal(Mul(a, b))",
      "given a[m,n] b[m,k] source Concat(a, b, axis=1) target "
      "Add(Pad(a, begins=[0,0], ends=[0,k]), Pad(b, begins=[0,n], ends=[0,0]))",
      "given x[n,c,h,w] source Conv(x, ConvIdentity(channels=c, kernel_shape=[3,3]), "
      "pads=[1,1,1,1]) "
      "target x",
      "given a[m,n] b[m,n] source Add(Sub(a, b), b) target a",
      "given a[m,n] b[m,n] c[m,n] source Div(Div(a, b), c) target Div(a, Mul(b, c))",
      "given a[m,n] b[m,n] source Mul(Div(a, Exp(b)), Exp(b)) target a",
      "given a[m,n] b[m,n] source Max(a, b) target Add(b, Relu(Sub(a, b)))",  // inf - inf
      "given a[m,n] source Mul(Sqrt(Exp(a)), Sqrt(Exp(a))) target Exp(a)",
      "given a[m,n] c[m,1] g[n] source LayerNormalization(Add(a, c), g) target "
      "LayerNormalization(a, g)",
      // Where sums cancel, a reciprocal or a root is of rounding.
      "given a[m,n] b[n,k] c[k,l] source Reciprocal(MatMul(MatMul(a, b), c)) target "
      "Reciprocal(MatMul(a, MatMul(b, c)))",
      "given x[m,n] source Sqrt(Sub(ReduceMean(Mul(x, x), axis=1), Mul(ReduceMean(x, axis=1), "
      "ReduceMean(x, axis=1)))) target Sqrt(ReduceMean(Mul(Sub(x, ReduceMean(x, axis=1)), Sub(x, "
      "ReduceMean(x, axis=1))), axis=1))",
      // A negative zero.
      "given a[m,n] source Neg(Pad(a, begins=[0,0], ends=[0,1])) target "
      "Pad(Neg(a), begins=[0,0], ends=[0,1])",
  };
  for (const char* text : domain) EXPECT_EQ(Of(text), FloatClass::kDomain) << text;
}

TEST(FloatClassTest, ARuleWithoutInstancesIsDomain) {
  EXPECT_EQ(Of("given a[m,n] source Relu(Relu(a)) target Relu(a) where m >= 1000"),
            FloatClass::kDomain);
}

TEST(FloatClassTest, TheWorstOutputDecides) {
  EXPECT_EQ(Of("given a[m,n] source Transpose(Transpose(a)), Add(a, Fill(shape=[m,n], value=0)) "
               "target a, a"),
            FloatClass::kDomain);
}

// Every true rule of the corpora has a class, and keeps its promise.
TEST(FloatClassTest, RulesOfTheCorporaKeepTheirPromises) {
  const std::filesystem::path root = std::filesystem::path(TENON_SOURCE_DIR) / "tests/rules/true";
  int count[4] = {}, instances = 0;
  double worst = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() != ".rules") continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const auto parsed = ParseRules(text.str(), entry.path().filename().string());
    ASSERT_TRUE(parsed.ok()) << base::Message(parsed.status());
    for (const ParsedRule& p : *parsed) {
      if (!p.rule.ok()) continue;
      const FloatClass found = FloatClassOf(*p.rule);
      ++count[static_cast<int>(found)];
      const testing::FloatCheck check = testing::CheckFloats(*p.rule, found, 12);
      EXPECT_EQ(check.broken, "") << p.name;
      instances += check.instances;
      worst = std::max(worst, check.worst_error);
    }
  }
  fmt::print("{} exact, {} finite, {} domain; {} instances, worst error {:.2g} of the bound\n",
             count[1], count[2], count[3], instances, worst);
  EXPECT_GT(count[1], 20);
  EXPECT_GT(count[2], 50);
  EXPECT_GT(instances, 500);
}

// The check can fail: a class that promises too much is found out.
TEST(FloatClassTest, ABrokenPromiseIsFound) {
  const auto reordered = ParseRule(
      "rule r given a[m,n] b[m,n] c[m,n] source Add(a, Add(b, c)) target Add(Add(a, b), c)");
  EXPECT_NE(testing::CheckFloats(*reordered, FloatClass::kExact, 20).broken, "");
  const auto zero =
      ParseRule("rule r given a[m,n] source Add(a, Fill(shape=[m,n], value=0)) target a");
  EXPECT_NE(testing::CheckFloats(*zero, FloatClass::kExact, 20).broken, "");  // -0 + 0 is 0.
  const auto lossy = ParseRule(
      "rule r given a[m,n] source Mul(Mul(a, Fill(shape=[m,n], value=1e-200)), "
      "Fill(shape=[m,n], value=1e-200)) target Mul(a, Fill(shape=[m,n], value=1))");
  EXPECT_NE(testing::CheckFloats(*lossy, FloatClass::kFinite, 20).broken, "");
}

}  // namespace
}  // namespace tenon::rules
