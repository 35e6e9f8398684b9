// How long rules of the corpora take to be proved, certified and checked: the distribution over the
// rules, in milliseconds of this thread.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/check.h"
#include "core/rules/text.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::vector<rules::Rule> Corpus(const char* folder) {
  std::vector<rules::Rule> out;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(TENON_SOURCE_DIR) / folder)) {
    if (entry.path().extension() == ".rules") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    const auto parsed = rules::ParseRules(text.str(), file.string());
    CHECK(parsed.ok());
    for (const rules::ParsedRule& p : *parsed) {
      if (p.rule.ok()) out.push_back(*p.rule);
    }
  }
  return out;
}

double ThreadMs() {
  timespec t{};
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// Times f(rule) for each rule for which it returns true.
template <class F>
void Distribution(benchmark::State& state, const std::vector<rules::Rule>& rules, F f) {
  std::vector<double> ms;
  for (auto _ : state) {
    for (const rules::Rule& rule : rules) {
      const double start = ThreadMs();
      const bool counts = f(rule);
      const double took = ThreadMs() - start;
      if (counts) ms.push_back(took);
    }
  }
  CHECK(!ms.empty());
  std::sort(ms.begin(), ms.end());
  state.counters["rules"] = static_cast<double>(ms.size());
  state.counters["median_ms"] = ms[ms.size() / 2];
  state.counters["p95_ms"] = ms[ms.size() * 95 / 100];
  state.counters["max_ms"] = ms.back();
}

bool IsProved(const rules::Rule& rule) {
  const auto verdict = verifier::Prove(rule, {});
  CHECK(verdict.ok());
  return verdict->kind == verifier::VerdictKind::kProved;
}

void ProveTrueRules(benchmark::State& state) {
  Distribution(state, Corpus("tests/rules/true"), IsProved);
}
BENCHMARK(ProveTrueRules)->Iterations(1)->Unit(benchmark::kMillisecond);

void JudgeFalseRules(benchmark::State& state) {
  Distribution(state, Corpus("tests/rules/false"),
               [](const rules::Rule& rule) { return !IsProved(rule); });
}
BENCHMARK(JudgeFalseRules)->Iterations(1)->Unit(benchmark::kMillisecond);

void CertifyTrueRules(benchmark::State& state) {
  Distribution(state, Corpus("tests/rules/true"),
               [](const rules::Rule& rule) { return certify::Certify(rule).ok(); });
}
BENCHMARK(CertifyTrueRules)->Iterations(1)->Unit(benchmark::kMillisecond);

void CheckTrueRules(benchmark::State& state) {
  std::vector<rules::Rule> rules;
  std::vector<std::string> certificates;
  for (rules::Rule& rule : Corpus("tests/rules/true")) {
    auto certificate = certify::Certify(rule);
    if (!certificate.ok()) continue;
    rules.push_back(std::move(rule));
    certificates.push_back(*std::move(certificate));
  }
  std::size_t k = 0;
  Distribution(state, rules,
               [&](const rules::Rule& rule) { return cert::Check(rule, certificates[k++]).ok(); });
}
BENCHMARK(CheckTrueRules)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon
