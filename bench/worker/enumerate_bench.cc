// How fast graphs are enumerated, and what they take: end to end, with records in a store and
// classes read back. Counters: graphs, graphs a CPU second, record bytes a graph, peak memory of
// the process.
#include <benchmark/benchmark.h>

#include "proto/convert/universe.h"
#include "worker/enumerate.h"

namespace tenon::worker {
namespace {

void Report(benchmark::State& state, const Enumeration& e, double cpu_seconds) {
  const double graphs = double(e.graphs);
  state.counters["graphs"] = graphs;
  state.counters["classes"] = double(e.classes);
  state.counters["graphs_per_cpu_s"] = graphs * double(state.iterations()) / cpu_seconds;
  state.counters["record_B_per_graph"] = double(e.record_bytes) / graphs;
  state.counters["peak_rss_MB"] = double(e.peak_rss_bytes) / 1e6;
}

void Enumerates(benchmark::State& state, const char* name, Mode mode) {
  const auto universe = convert::LoadUniverse(name);
  if (!universe.ok()) {
    state.SkipWithError(base::Message(universe.status()).c_str());
    return;
  }
  const EnumerateOptions options{.max_operators = int(state.range(0)),
                                 .mode = mode,
                                 .shards = std::uint32_t(state.range(1)),
                                 .time_limit_seconds = 0};
  double cpu_seconds = 0;
  Enumeration last;
  for (auto _ : state) {
    auto e = Enumerate(*universe, options);
    if (!e.ok()) {
      state.SkipWithError(base::Message(e.status()).c_str());
      return;
    }
    cpu_seconds += e->cpu_seconds;
    last = *std::move(e);
  }
  Report(state, last, cpu_seconds);
}

// Sizes and shards; the peak memory is that of the largest so far.
BENCHMARK_CAPTURE(Enumerates, matrix, "matrix", Mode::kExhaustive)
    ->ArgNames({"operators", "shards"})
    ->ArgsProduct({{1, 2, 3}, {1, 16, 64}})
    ->Args({4, 1})
    ->Args({4, 16})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Enumerates, matrix_canonical, "matrix", Mode::kCanonical)
    ->ArgNames({"operators", "shards"})
    ->ArgsProduct({{3, 4}, {1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Enumerates, conv, "conv", Mode::kExhaustive)
    ->ArgNames({"operators", "shards"})
    ->ArgsProduct({{1, 2, 3}, {1, 16}})
    ->Unit(benchmark::kMillisecond);

// The walk alone: no values, no records.
void Walks(benchmark::State& state, const char* name) {
  const auto universe = convert::LoadUniverse(name);
  if (!universe.ok()) {
    state.SkipWithError(base::Message(universe.status()).c_str());
    return;
  }
  Levels levels(*universe, false);
  for (int size = 1; size < int(state.range(0)); ++size) {
    for (std::uint64_t unit = 0; unit < levels.unit_count(); ++unit) {
      levels.Walk(unit, [&](const Candidate& c) { levels.Add(c); });
    }
    levels.CompleteLevel();
  }
  std::uint64_t graphs = 0;
  for (auto _ : state) {
    for (std::uint64_t unit = 0; unit < levels.unit_count(); ++unit) {
      levels.Walk(unit, [&](const Candidate&) { ++graphs; });
    }
  }
  state.counters["graphs"] = double(graphs) / double(state.iterations());
  state.counters["graphs_per_s"] = benchmark::Counter(double(graphs), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(Walks, matrix, "matrix")->Arg(3)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Walks, conv, "conv")->Arg(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon::worker
