// Every rule of tests/rules gets the verdict that it expects.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "tests/verifier/corpus.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

TEST(CorpusTest, EveryRuleMeetsItsExpectation) {
  std::vector<double> times;
  std::map<VerdictKind, int> kinds;
  int misfits = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    EXPECT_NE(c.parsed.expect, rules::Expect::kNone) << c.parsed.name << " expects nothing";
    const std::string where = fmt::format("{}:{} {}", c.file, c.parsed.line, c.parsed.name);
    if (!c.parsed.rule.ok()) {
      EXPECT_TRUE(Meets(c.parsed.expect, VerdictKind::kIllFormed))
          << where << ": " << base::Message(c.parsed.rule.status());
      misfits += 1;
      continue;
    }
    const std::clock_t start = std::clock();
    const auto verdict = Prove(*c.parsed.rule, Budget{});
    const double took = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!verdict.ok()) {
      ADD_FAILURE() << where << ": " << base::Message(verdict.status());
      continue;
    }
    times.push_back(took);
    ++kinds[verdict->kind];
    EXPECT_TRUE(Meets(c.parsed.expect, verdict->kind))
        << where << " expects " << rules::NameOf(c.parsed.expect) << ", got "
        << NameOf(verdict->kind) << ": " << verdict->reason;
    if (c.file.rfind("open/", 0) == 0) {
      EXPECT_NE(verdict->kind, VerdictKind::kRefuted) << where << " is true, only not decided";
    }
    if (verdict->kind == VerdictKind::kRefuted) {
      ASSERT_TRUE(verdict->counterexample.has_value()) << where;
      EXPECT_NE(verdict->counterexample->source_value, verdict->counterexample->target_value);
    }
    fmt::print("{:10} {:8.2f} ms {:4} queries {:8} rlimit {:3} cells  {:50.50} {}\n",
               NameOf(verdict->kind), took, verdict->counters.queries, verdict->counters.rlimit,
               verdict->counters.cells, c.parsed.name, verdict->reason);
  }
  ASSERT_FALSE(times.empty());
  std::sort(times.begin(), times.end());
  double total = 0;
  for (double t : times) total += t;
  fmt::print(
      "CPU time of {} rules ({} more have no type): median {:.2f} ms, 95% {:.2f} ms, max {:.2f} "
      "ms, "
      "total {:.0f} ms\n",
      times.size(), misfits, times[times.size() / 2], times[times.size() * 95 / 100], times.back(),
      total);
  for (const auto& [kind, count] : kinds) fmt::print("  {:10} {}\n", NameOf(kind), count);
}

}  // namespace
}  // namespace tenon::verifier
