// The second opinion: its axioms are proved and certified, and it contradicts neither the prover
// nor the tester, on any rule of the corpora.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "coordinator/reduce/derive.h"
#include "core/rules/canonical.h"
#include "tests/verifier/corpus.h"
#include "verifier/axioms/axioms.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"
#include "verifier/screen.h"

namespace tenon::verifier {
namespace {

using axioms::SecondOpinion;

// Both sides have one canonical form, so no certificate can speak of it: exchanged operands of a
// commutative operator. It is proved all the same.
bool IsOneGraph(const rules::Rule& rule) {
  const auto canonical = rules::Canonical(rule);
  return canonical.ok() && canonical->source == canonical->target;
}

TEST(DeriveTest, EveryAxiomIsProvedAndCertified) {
  std::set<std::string> names;
  int certified = 0;
  for (const auto& axiom : axioms::BuiltIn()) {
    EXPECT_TRUE(names.insert(axiom->name).second) << axiom->name << " stands twice";
    const auto verdict = Prove(*axiom, Budget{});
    ASSERT_TRUE(verdict.ok()) << base::Message(verdict.status());
    EXPECT_EQ(verdict->kind, VerdictKind::kProved) << axiom->name << ": " << verdict->reason;
    if (IsOneGraph(*axiom)) continue;
    const auto certificate = certify::Certify(*axiom);
    EXPECT_TRUE(certificate.ok()) << base::Message(certificate.status());
    if (!certificate.ok()) continue;
    EXPECT_TRUE(cert::Check(*axiom, *certificate).ok()) << axiom->name;
    ++certified;
  }
  fmt::print("{} axioms, {} certified\n", names.size(), certified);
  EXPECT_GT(names.size(), 200u);
}

// The sizes of a counterexample, by symbol.
std::vector<std::int64_t> SizesOf(const rules::Rule& rule, const Counterexample& example) {
  const base::Symbols& symbols = rule.graph.symbols();
  std::map<std::string, std::int64_t> named(example.sizes.begin(), example.sizes.end());
  std::vector<std::int64_t> out(symbols.size(), 0);
  for (base::Symbol s = 1; s < symbols.size(); ++s) {
    const auto at = named.find(symbols.Print(base::Poly::Var(s)));
    if (at != named.end()) out[s] = at->second;
  }
  return out;
}

std::map<base::Symbol, std::int64_t> BySymbol(const std::vector<std::int64_t>& sizes) {
  std::map<base::Symbol, std::int64_t> out;
  for (base::Symbol s = 1; s < sizes.size(); ++s) out[s] = sizes[s];
  return out;
}

TEST(DeriveTest, ContradictsNeitherProverNorTester) {
  SecondOpinion second(axioms::BuiltIn());
  int proved = 0, derived = 0, refuted = 0, steps = 0;
  std::size_t longest = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (!c.parsed.rule.ok()) continue;
    const rules::Rule& rule = *c.parsed.rule;
    const std::string where = fmt::format("{}:{} {}", c.file, c.parsed.line, c.parsed.name);
    const auto verdict = Prove(rule, Budget{});
    ASSERT_TRUE(verdict.ok()) << base::Message(verdict.status());
    if (verdict->kind == VerdictKind::kRefuted) {
      // At the very sizes where the tester saw two values.
      ++refuted;
      const auto opinion = second.At(rule, SizesOf(rule, *verdict->counterexample));
      ASSERT_TRUE(opinion.ok()) << where << ": " << base::Message(opinion.status());
      EXPECT_FALSE(opinion->derived()) << where << " is refuted, and derived at the same sizes";
      continue;
    }
    const auto sizes = reduce::DistinctSizes(rule);
    if (!sizes || verdict->kind == VerdictKind::kIllFormed) continue;
    const auto opinion = second.At(rule, *sizes);
    ASSERT_TRUE(opinion.ok()) << where << ": " << base::Message(opinion.status());
    if (opinion->derived()) {
      EXPECT_EQ(verdict->kind, VerdictKind::kProved) << where << " is derived but not proved";
      EXPECT_FALSE(TestAt(rule, BySymbol(*sizes), {}).has_value()) << where;
      for (const rules::Derivation& d : opinion->derivations) {
        steps += static_cast<int>(d.steps.size());
        longest = std::max(longest, d.steps.size());
      }
    }
    if (verdict->kind != VerdictKind::kProved) continue;
    ++proved;
    derived += opinion->derived() ? 1 : 0;
    fmt::print("{:12} {}\n", opinion->derived() ? "derived" : "not derived", where);
  }
  fmt::print("of {} proved rules {} are derived, in {} steps, {} at most; of {} refuted none\n",
             proved, derived, steps, longest, refuted);
  EXPECT_GE(derived, 90);
  EXPECT_GT(refuted, 100);
}

// A false axiom is found out: by what it derives of rules that the tester refutes.
TEST(DeriveTest, AWrongAxiomContradictsTheTester) {
  axioms::RuleList list = axioms::BuiltIn();
  list.push_back(std::make_shared<const rules::Rule>(
      *rules::ParseRule("rule wrong given a[m,m] b[m,m] source MatMul(a, b) target MatMul(b, a)")));
  SecondOpinion second(std::move(list));
  int contradictions = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.file != "false/matmul.rules" || !c.parsed.rule.ok()) continue;
    const auto verdict = Prove(*c.parsed.rule, Budget{});
    if (!verdict.ok() || verdict->kind != VerdictKind::kRefuted) continue;
    const auto opinion =
        second.At(*c.parsed.rule, SizesOf(*c.parsed.rule, *verdict->counterexample));
    contradictions += opinion.ok() && opinion->derived() ? 1 : 0;
  }
  EXPECT_GT(contradictions, 0);
}

}  // namespace
}  // namespace tenon::verifier
