// Mutants of the true rules: the prover and the random tester, which share only the operators'
// definitions, never contradict each other. A green fuzz proves little by itself; faults_test shows
// what it would notice.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "core/rules/text.h"
#include "tests/verifier/corpus.h"
#include "tests/verifier/mutate.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

void Fuzz(std::uint64_t seed, int mutants) {
  std::vector<rules::Rule> corpus;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.parsed.expect == rules::Expect::kProved && c.parsed.rule.ok()) {
      corpus.push_back(*c.parsed.rule);
    }
  }
  ASSERT_FALSE(corpus.empty());
  std::mt19937_64 random(seed);
  std::map<VerdictKind, int> kinds;
  int contradictions = 0;
  Budget budget;
  budget.cross_check = true;
  for (int done = 0; done < mutants;) {
    std::optional<rules::Rule> mutant = Mutated(corpus[random() % corpus.size()], random);
    if (mutant && random() % 3 == 0) {
      if (auto twice = Mutated(*mutant, random)) mutant = std::move(twice);
    }
    if (!mutant) continue;
    ++done;
    const auto verdict = Prove(*mutant, budget);
    if (!verdict.ok()) {
      ++contradictions;
      ADD_FAILURE() << "seed " << seed << ": " << base::Message(verdict.status()) << "\n"
                    << rules::PrintRule(*mutant);
      continue;
    }
    ++kinds[verdict->kind];
    if (verdict->kind == VerdictKind::kUnproved || verdict->kind == VerdictKind::kUnknown) {
      fmt::print("{} ({}): {}\n", NameOf(verdict->kind), verdict->reason,
                 rules::PrintRule(*mutant));
    }
  }
  fmt::print("seed {}: {} mutants, contradictions {}\n", seed, mutants, contradictions);
  for (const auto& [kind, count] : kinds) fmt::print("  {:10} {}\n", NameOf(kind), count);
  // Mutation must not be so harmless or so crude that nothing is at stake.
  EXPECT_GT(kinds[VerdictKind::kProved], mutants / 50);
  EXPECT_GT(kinds[VerdictKind::kRefuted], mutants / 10);
}

// Longer: TENON_FUZZ_MUTANTS=20000 TENON_FUZZ_SEED=$RANDOM verifier_fuzz_test
std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(FuzzTest, ProverAndTesterNeverContradict) {
  Fuzz(FromEnvironment("TENON_FUZZ_SEED", 1), int(FromEnvironment("TENON_FUZZ_MUTANTS", 500)));
}

}  // namespace
}  // namespace tenon::verifier
