// Verdicts, counters and certificates depend on the rule alone: not on the run, on what was proved
// before, or on how many threads prove at once.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/verifier/corpus.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

struct Answer {
  VerdictKind kind = VerdictKind::kUnknown;
  std::string reason, certificate;
  Counters counters;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer Ask(const rules::Rule& rule) {
  const auto verdict = Prove(rule, Budget{});
  if (!verdict.ok()) return {.reason = base::Message(verdict.status())};
  Answer out{verdict->kind, verdict->reason, "", verdict->counters};
  if (verdict->kind != VerdictKind::kProved) return out;
  const auto certificate = certify::Certify(rule);
  out.certificate = certificate.ok() ? *certificate : base::Message(certificate.status());
  return out;
}

std::vector<Answer> AskAll(const std::vector<rules::Rule>& rules, unsigned threads, bool reversed) {
  std::vector<Answer> out(rules.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t n = next++; n < rules.size(); n = next++) {
      const std::size_t k = reversed ? rules.size() - 1 - n : n;
      out[k] = Ask(rules[k]);
    }
  };
  std::vector<std::jthread> others;
  for (unsigned k = 1; k < threads; ++k) others.emplace_back(work);
  work();
  return out;
}

TEST(DeterminismTest, AnswersDependOnTheRuleAlone) {
  std::vector<rules::Rule> rules;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.parsed.rule.ok()) rules.push_back(*c.parsed.rule);
  }
  ASSERT_GT(rules.size(), 400u);
  const std::vector<Answer> first = AskAll(rules, 1, false);
  for (const unsigned threads : {2u, 4u}) {
    // The other order, so that each rule has another past.
    const std::vector<Answer> again = AskAll(rules, threads, threads == 2);
    for (std::size_t k = 0; k < rules.size(); ++k) {
      EXPECT_TRUE(again[k] == first[k])
          << rules[k].name << " with " << threads << " threads: " << NameOf(again[k].kind) << ", "
          << NameOf(first[k].kind) << "; " << again[k].counters.rlimit << ", "
          << first[k].counters.rlimit << " units; certificates of " << again[k].certificate.size()
          << " and " << first[k].certificate.size() << " bytes";
    }
  }
}

}  // namespace
}  // namespace tenon::verifier
