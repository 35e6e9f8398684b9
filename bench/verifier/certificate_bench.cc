// Proving, certifying and checking a rule whose comparison needs arguments.
#include <benchmark/benchmark.h>

#include "core/base/check.h"
#include "core/rules/text.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon {
namespace {

rules::Rule SplitK() {
  const auto rule = rules::ParseRule(
      "rule r given a[m,k] b[k,n] attr h >= 1 source MatMul(a, b) "
      "target Add(MatMul(Slice(a, axis=1, start=0, end=h), Slice(b, axis=0, start=0, end=h)), "
      "MatMul(Slice(a, axis=1, start=h, end=k), Slice(b, axis=0, start=h, end=k))) where h < k");
  CHECK(rule.ok());
  return *rule;
}

void Prove(benchmark::State& state) {
  const rules::Rule rule = SplitK();
  for (auto _ : state) CHECK(verifier::Prove(rule, {}).ok());
}
BENCHMARK(Prove)->Unit(benchmark::kMillisecond);

void Certify(benchmark::State& state) {
  const rules::Rule rule = SplitK();
  for (auto _ : state) CHECK(certify::Certify(rule).ok());
}
BENCHMARK(Certify)->Unit(benchmark::kMillisecond);

void Check(benchmark::State& state) {
  const rules::Rule rule = SplitK();
  const std::string certificate = *certify::Certify(rule);
  for (auto _ : state) CHECK(cert::Check(rule, certificate).ok());
}
BENCHMARK(Check)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon
