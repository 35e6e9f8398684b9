// Every rule that is proved is certified, and its certificate is checked without a solver.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "tests/verifier/corpus.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"

namespace tenon::verifier {
namespace {

double Since(std::clock_t start) {
  return 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(CertifyTest, EveryProvedRuleOfTheCorpusIsCertified) {
  std::vector<double> make, check;
  std::vector<std::size_t> sizes;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.parsed.expect != rules::Expect::kProved || !c.parsed.rule.ok()) continue;
    const std::clock_t start = std::clock();
    const auto certificate = certify::Certify(*c.parsed.rule);
    make.push_back(Since(start));
    if (!certificate.ok()) {
      ADD_FAILURE() << c.file << ":" << c.parsed.line << " " << base::Message(certificate.status());
      continue;
    }
    const std::clock_t begin = std::clock();
    const auto checked = cert::Check(*c.parsed.rule, *certificate);
    check.push_back(Since(begin));
    sizes.push_back(certificate->size());
    ASSERT_TRUE(checked.ok()) << base::Message(checked.status());
    fmt::print("made in {:8.2f} ms, {:6} bytes, checked in {:6.2f} ms, {:3} of {:3} answers  {}\n",
               make.back(), certificate->size(), check.back(), checked->arguments, checked->answers,
               c.parsed.name);
  }
  ASSERT_FALSE(check.empty());
  std::sort(make.begin(), make.end());
  std::sort(check.begin(), check.end());
  std::sort(sizes.begin(), sizes.end());
  fmt::print(
      "{} certificates of {} rules; CPU: made in median {:.2f} ms, max {:.2f}; checked in "
      "median {:.3f} ms, max {:.2f}; bytes: median {}, max {}\n",
      check.size(), make.size(), make[make.size() / 2], make.back(), check[check.size() / 2],
      check.back(), sizes[sizes.size() / 2], sizes.back());
}

// A rule and its canonical form are one identity; where the form's sides are one graph, the
// certificate is of the rule as it is written, and the form alone is no rewrite.
TEST(CertifyTest, CommutationIsCertifiedAsItIsWritten) {
  const auto rule = rules::ParseRule("rule r given a[m,n] b[n] source Max(a, b) target Max(b, a)");
  ASSERT_TRUE(rule.ok());
  const auto certificate = certify::Certify(*rule);
  ASSERT_TRUE(certificate.ok()) << base::Message(certificate.status());
  EXPECT_TRUE(cert::Check(*rule, *certificate).ok());
  const auto canonical = rules::Canonical(*rule);
  ASSERT_TRUE(canonical.ok());
  EXPECT_EQ(canonical->source, canonical->target);
  EXPECT_FALSE(cert::Check(*canonical, *certificate).ok());
  EXPECT_FALSE(certify::Certify(*canonical).ok());
}

TEST(CertifyTest, AVerdictWithoutACertificateIsNoProof) {
  const auto rule =
      rules::ParseRule("rule r given a[m,n] b[m,n] source Sub(a, b) target Sub(b, a)");
  ASSERT_TRUE(rule.ok());
  Verdict claimed{.kind = VerdictKind::kProved};
  EXPECT_EQ(certify::CertifyOrDemote(*rule, claimed), "");
  EXPECT_EQ(claimed.kind, VerdictKind::kUnproved);
  EXPECT_NE(claimed.reason, "");
}

TEST(CertifyTest, NoRuleThatIsNotProvedIsCertified) {
  int rules = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.parsed.expect == rules::Expect::kProved || !c.parsed.rule.ok()) continue;
    ++rules;
    EXPECT_FALSE(certify::Certify(*c.parsed.rule).ok()) << c.file << ":" << c.parsed.line;
  }
  EXPECT_GT(rules, 50);
}

}  // namespace
}  // namespace tenon::verifier
