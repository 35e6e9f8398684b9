#include "core/rules/forms.h"

#include <algorithm>

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
bool Contains(const std::vector<Rule>& forms, const std::string& wanted) {
  const std::string bytes = *CanonicalBytes(Parse(wanted));
  return std::any_of(forms.begin(), forms.end(),
                     [&](const Rule& form) { return *CanonicalBytes(form) == bytes; });
}
std::string Texts(const std::vector<Rule>& forms) {
  std::string out;
  for (const Rule& form : forms) out += PrintRule(form) + "\n";
  return out;
}

TEST(FormsTest, ActivationsGetABatchAndWeightsDoNot) {
  const auto forms =
      Forms(Parse("given a[m,n] b[n,k] c[k,r] source MatMul(a, MatMul(b, c)) target "
                  "MatMul(MatMul(a, b), c) both"));
  const std::string sides = " source MatMul(a, MatMul(b, c)) target MatMul(MatMul(a, b), c) both";
  for (const char* given :
       {"a[l,m,n] b[n,k] c[k,r]", "a[l,m,n] b[l,n,k] c[l,k,r]", "a[l,p,m,n] b[n,k] c[k,r]",
        "a[l,p,m,n] b[l,p,n,k] c[l,p,k,r]", "a[l,p,m,n] b[p,n,k] c[p,k,r]"}) {
    EXPECT_TRUE(Contains(forms, std::string("given ") + given + sides)) << given << Texts(forms);
  }
  // No form has a batch of weights alone or fewer axes than a product has.
  EXPECT_FALSE(Contains(forms, "given a[m,n] b[l,n,k] c[k,r]" + sides));
}

TEST(FormsTest, AxesAndPermutationsFollow) {
  EXPECT_TRUE(
      Contains(Forms(Parse("given a[m,n] b[n,k] c[n,r] source MatMul(a, b), MatMul(a, c) "
                           "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, end=k), "
                           "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=k, end=k+r)")),
               "given a[l,m,n] b[n,k] c[n,r] source MatMul(a, b), MatMul(a, c) "
               "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=2, end=k), "
               "Slice(MatMul(a, Concat(b, c, axis=1)), axis=2, start=k, end=k+r)"));
  EXPECT_TRUE(
      Contains(Forms(Parse("given a[m,k] b[k,n] source Transpose(MatMul(a, b)) "
                           "target MatMul(Transpose(b), Transpose(a)) both")),
               "given a[l,m,k] b[l,k,n] source Transpose(MatMul(a, b), perm=[0,2,1]) "
               "target MatMul(Transpose(b, perm=[0,2,1]), Transpose(a, perm=[0,2,1])) both"));
  const auto transposes = Forms(Parse("given a[m,n] source Transpose(Transpose(a)) target a"));
  for (const char* perm : {"0,2,1", "1,0,2", "2,1,0"}) {
    const std::string t = std::string(", perm=[") + perm + "])";
    EXPECT_TRUE(
        Contains(transposes, "given a[l,m,n] source Transpose(Transpose(a" + t + t + " target a"))
        << perm << Texts(transposes);
  }
}

// One axis that is joined and up to three others, before and behind it: 1 + 2 + 3 + 4.
TEST(FormsTest, AConcatMayLieAlongEveryAxisOfEveryRank) {
  for (const char* start :
       {"given a[m,n] b[m,k] source Concat(Relu(a), Relu(b), axis=1) target "
        "Relu(Concat(a, b, axis=1)) both",
        "given a[m,n,p,q] b[m,n,r,q] source Concat(Relu(a), Relu(b), axis=2) target "
        "Relu(Concat(a, b, axis=2)) both"}) {
    const auto forms = Forms(Parse(start));
    EXPECT_EQ(forms.size(), 9u) << Texts(forms);
    EXPECT_TRUE(Contains(forms,
                         "given a[m] b[n] source Concat(Relu(a), Relu(b)) target "
                         "Relu(Concat(a, b)) both"));
    EXPECT_TRUE(Contains(forms,
                         "given a[m,n,p] b[m,r,p] source Concat(Relu(a), Relu(b), axis=1) target "
                         "Relu(Concat(a, b, axis=1)) both"));
  }
}

TEST(FormsTest, TheFormsOfAFormAreThoseOfTheRule) {
  const Rule rule = Parse(
      "given a[m,n] b[m,n] c[m,n] source Add(Add(a, b), c) target "
      "Add(b, Add(a, c)) both");
  const auto forms = Forms(rule);
  EXPECT_EQ(forms.size(), 3u) << Texts(forms);  // Ranks 1, 3 and 4.
  for (const Rule& form : forms) {
    Dice dice(3);
    EXPECT_TRUE(LooksTrue(form, dice, 50)) << PrintRule(form);
    std::vector<std::string> bytes{*CanonicalBytes(form)}, wanted{*CanonicalBytes(rule)};
    for (const Rule& f : Forms(form)) bytes.push_back(*CanonicalBytes(f));
    for (const Rule& f : forms) wanted.push_back(*CanonicalBytes(f));
    std::sort(bytes.begin(), bytes.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(bytes, wanted) << PrintRule(form);
  }
}

TEST(FormsTest, WhatFixesItsAxesHasNoOtherForm) {
  EXPECT_TRUE(Forms(Parse("given x[n,c,h,w] a[f,c,i,j] source Relu(Conv(x, a)) target "
                          "Conv(x, a, activation=relu)"))
                  .empty());
  EXPECT_TRUE(Forms(Parse("given a[m,n] b[n,k] source Reshape(MatMul(a, b), shape=[m*k]) "
                          "target Reshape(MatMul(a, b), shape=[m*k])"))
                  .empty());
}

}  // namespace
}  // namespace tenon::rules
