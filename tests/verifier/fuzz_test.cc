// Mutants of the true rules: the prover and the random tester, which share only the operators'
// definitions, never contradict each other. A green fuzz proves little by itself; faults_test shows
// what it would notice.
//
// A mutant depends on the seed and its number alone, so that one that fails can be had again.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "core/base/mutex.h"
#include "core/rules/text.h"
#include "tests/verifier/corpus.h"
#include "tests/verifier/mutate.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

using Clock = std::chrono::steady_clock;

struct Plan {
  std::uint64_t seed = 1;
  std::uint64_t mutants = 500;      // 0: until the minutes are over.
  std::uint64_t first = 0;          // The number of the first.
  std::chrono::minutes minutes{0};  // 0: no limit.
  unsigned threads = 1;
};

class Fuzzer {
 public:
  Fuzzer(const Plan& plan, std::vector<rules::Rule> corpus)
      : plan_(plan), corpus_(std::move(corpus)), end_(Clock::now() + plan.minutes) {
    budget_.cross_check = true;
  }

  void Run() {
    std::vector<std::jthread> threads;
    for (unsigned k = 1; k < plan_.threads; ++k) threads.emplace_back([this] { Work(); });
    Work();
  }

  void Report() {
    fmt::print("seed {}: {} mutants, contradictions {}, certificates {} of {} proved\n", plan_.seed,
               judged_, contradictions_, certified_, tried_);
    for (const auto& [kind, count] : kinds_) fmt::print("  {:10} {}\n", NameOf(kind), count);
    for (const auto& [reason, count] : reasons_) fmt::print("    {:5} {}\n", count, reason);
    EXPECT_EQ(contradictions_, 0);
    // Mutation must not be so harmless or so crude that nothing is at stake.
    EXPECT_GT(kinds_[VerdictKind::kProved], judged_ / 50);
    EXPECT_GT(kinds_[VerdictKind::kRefuted], judged_ / 10);
    // A mutant without a certificate is a weakness; most must have one.
    EXPECT_GT(certified_, tried_ * 8 / 10);
  }

 private:
  std::optional<rules::Rule> Mutant(std::uint64_t number) const {
    std::seed_seq words{plan_.seed, plan_.seed >> 32, number, number >> 32};
    std::mt19937_64 random(words);
    for (int tries = 0; tries < 1000; ++tries) {
      std::optional<rules::Rule> mutant = Mutated(corpus_[random() % corpus_.size()], random);
      if (mutant && random() % 3 == 0) {
        if (auto twice = Mutated(*mutant, random)) mutant = std::move(twice);
      }
      if (mutant) return mutant;
    }
    return std::nullopt;
  }

  void Work() {
    for (;;) {
      const std::uint64_t number = next_++;
      if (plan_.mutants != 0 && number >= plan_.mutants) return;
      if (plan_.minutes.count() != 0 && Clock::now() >= end_) return;
      Judge(plan_.first + number);
    }
  }

  void Judge(std::uint64_t number) {
    const std::optional<rules::Rule> mutant = Mutant(number);
    ASSERT_TRUE(mutant.has_value()) << "mutation changes nothing";
    const auto verdict = Prove(*mutant, budget_);
    // Of the proved ones each tenth is certified: what the checker accepts is not wrong, either.
    const bool proved = verdict.ok() && verdict->kind == VerdictKind::kProved;
    absl::Status certified = absl::OkStatus();
    if (proved && number % 10 == 0) certified = certify::Certify(*mutant).status();
    const base::MutexLock lock(mutex_);
    ++judged_;
    if (!verdict.ok() || absl::IsInternal(certified)) {
      ++contradictions_;
      ADD_FAILURE() << "seed " << plan_.seed << " mutant " << number << ": "
                    << base::Message(verdict.ok() ? certified : verdict.status()) << "\n"
                    << rules::PrintRule(*mutant);
      return;
    }
    ++kinds_[verdict->kind];
    if (proved && number % 10 == 0) {
      ++tried_;
      certified_ += certified.ok() ? 1 : 0;
      if (!certified.ok()) {
        fmt::print("mutant {} {}: {}\n", number, base::Message(certified),
                   rules::PrintRule(*mutant));
      }
    }
    if (verdict->kind == VerdictKind::kUnproved || verdict->kind == VerdictKind::kUnknown) {
      ++reasons_[verdict->kind == VerdictKind::kUnproved ? "neither proved nor refuted"
                                                         : verdict->reason];
      fmt::print("mutant {} {} ({}): {}\n", number, NameOf(verdict->kind), verdict->reason,
                 rules::PrintRule(*mutant));
    }
  }

  const Plan plan_;
  const std::vector<rules::Rule> corpus_;
  const Clock::time_point end_;
  Budget budget_;
  std::atomic<std::uint64_t> next_{0};
  base::Mutex mutex_;
  std::map<VerdictKind, int> kinds_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> reasons_ ABSL_GUARDED_BY(mutex_);
  int judged_ ABSL_GUARDED_BY(mutex_) = 0;
  int contradictions_ ABSL_GUARDED_BY(mutex_) = 0;
  int tried_ ABSL_GUARDED_BY(mutex_) = 0, certified_ ABSL_GUARDED_BY(mutex_) = 0;
};

std::vector<rules::Rule> TrueRules() {
  std::vector<rules::Rule> out;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.parsed.expect == rules::Expect::kProved && c.parsed.rule.ok()) {
      out.push_back(*c.parsed.rule);
    }
  }
  return out;
}

// `./dev fuzz prover` sets these; TENON_FUZZ_FIRST with TENON_FUZZ_MUTANTS=1 repeats one mutant.
std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(FuzzTest, ProverAndTesterNeverContradict) {
  std::vector<rules::Rule> corpus = TrueRules();
  ASSERT_FALSE(corpus.empty());
  Plan plan;
  plan.seed = FromEnvironment("TENON_FUZZ_SEED", plan.seed);
  plan.first = FromEnvironment("TENON_FUZZ_FIRST", 0);
  plan.minutes = std::chrono::minutes(FromEnvironment("TENON_FUZZ_MINUTES", 0));
  plan.mutants =
      FromEnvironment("TENON_FUZZ_MUTANTS", plan.minutes.count() == 0 ? plan.mutants : 0);
  plan.threads = static_cast<unsigned>(FromEnvironment("TENON_FUZZ_THREADS", 1));
  Fuzzer fuzzer(plan, std::move(corpus));
  fuzzer.Run();
  if (plan.mutants != 1) fuzzer.Report();
}

}  // namespace
}  // namespace tenon::verifier
