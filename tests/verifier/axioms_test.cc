// TASO's axioms: proved and certified, or refuted where a condition is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verifier/corpus.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

using ::testing::HasSubstr;

TEST(AxiomsTest, EveryAxiomIsProvedAndCertified) {
  int proved = 0;
  for (const CorpusRule& c : ReadAxioms()) {
    ASSERT_NE(c.parsed.expect, rules::Expect::kNone) << c.parsed.name;
    const VerdictKind kind =
        c.parsed.rule.ok() ? Prove(*c.parsed.rule, Budget{})->kind : VerdictKind::kIllFormed;
    EXPECT_TRUE(Meets(c.parsed.expect, kind)) << c.parsed.name << " is " << NameOf(kind);
    if (kind != VerdictKind::kProved) continue;
    ++proved;
    const rules::Rule& rule = *c.parsed.rule;
    const auto certificate = certify::Certify(rule);
    ASSERT_TRUE(certificate.ok()) << c.parsed.name << ": " << certificate.status();
    EXPECT_TRUE(cert::Check(rule, *certificate).ok()) << c.parsed.name;
  }
  EXPECT_EQ(proved, 611);
}

// What is needed is shown to be needed, and the page says so.
TEST(AxiomsTest, EveryConditionIsInTheTable) {
  std::ifstream in(TENON_SOURCE_DIR "/docs/axioms.md");
  std::stringstream page;
  page << in.rdbuf();
  int needed = 0;
  for (const CorpusRule& c : ReadAxioms()) {
    if (c.file != "axioms/needed.rules") continue;
    ++needed;
    EXPECT_NE(c.parsed.expect, rules::Expect::kProved) << c.parsed.name;
    EXPECT_THAT(page.str(), HasSubstr("`" + c.parsed.name + "`"));
  }
  EXPECT_EQ(needed, 9);
}

}  // namespace
}  // namespace tenon::verifier
