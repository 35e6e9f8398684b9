// The rules that the search has of its own, and those that its tests rely on, are true.
#include <memory>

#include "core/rules/float_class.h"
#include "gtest/gtest.h"
#include "optimizer/search/built_in.h"
#include "tests/optimizer/rule_files.h"
#include "verifier/prove.h"

namespace tenon::optimizer {
namespace {

void ExpectProved(const std::vector<SearchRule>& rules) {
  for (const SearchRule& r : rules) {
    const auto verdict = verifier::Prove(*r.rule, {});
    ASSERT_TRUE(verdict.ok()) << r.rule->name;
    EXPECT_EQ(verdict->kind, verifier::VerdictKind::kProved)
        << r.rule->name << ": " << verdict->reason;
  }
}

TEST(BuiltInRulesTest, AllAreProved) { ExpectProved(BuiltInRules()); }

TEST(ViewRulesTest, AllAreProvedAndExact) {
  ExpectProved(ViewRules());
  for (const SearchRule& r : ViewRules()) {
    EXPECT_EQ(rules::FloatClassOf(*r.rule), rules::FloatClass::kExact) << r.rule->name;
  }
}

TEST(BuiltInRulesTest, NoneNeedsFastMath) {
  for (const SearchRule& r : BuiltInRules()) {
    const rules::FloatClass found = rules::FloatClassOf(*r.rule);
    EXPECT_NE(r.rule->float_class, rules::FloatClass::kDomain);
    // The classifier takes a written 0 for an input like any other, which could be an infinity; but
    // there it is the argument by which the shift of the normalization is found out beforehand.
    if (r.rule->name.starts_with("conv_normalization")) continue;
    EXPECT_LE(found, r.rule->float_class) << r.rule->name;
  }
}

TEST(BuiltInRulesTest, AllCompile) {
  const RuleSet set(BuiltInRules(), /*fast_math=*/false);
  EXPECT_GE(set.entries().size(), BuiltInRules().size());
  EXPECT_EQ(set.refused(), 0);
}

TEST(LectureRulesTest, AllAreProved) { ExpectProved(LectureRules()); }

}  // namespace
}  // namespace tenon::optimizer
