// How fast graphs with any number of outputs are enumerated, and what that takes: end to end, with
// records durable in a store and classes read back. Counters: graphs of the largest size, sequences
// of it (as a generator counts them that adds one operator at a time), CPU seconds of the process,
// graphs a CPU second, peak memory of the process so far, bytes on disk a graph, passes.
#include <filesystem>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "bench/cpu_seconds.h"
#include "core/base/check.h"
#include "proto/convert/universe.h"
#include "worker/sets/enumerate.h"

namespace tenon::worker {
namespace {

void EnumeratesSets(benchmark::State& state, const char* name) {
  const auto universe = convert::LoadUniverse(name);
  if (!universe.ok()) {
    state.SkipWithError(base::Message(universe.status()).c_str());
    return;
  }
  const EnumerateOptions options{.max_operators = int(state.range(0)),
                                 .shards = std::uint32_t(state.range(1)),
                                 .memory_limit_bytes = std::uint64_t(state.range(2)) << 20,
                                 .time_limit_seconds = 0};
  const std::string folder = std::filesystem::temp_directory_path() / "tenon-sets-bench";
  for (auto _ : state) {
    std::filesystem::remove_all(folder);
    const double before = CpuSeconds();
    const auto store = store::Store::Open(folder);
    CHECK(store.ok());
    auto e = SetEnumerator::Prepare(*universe, options);
    if (!e.ok()) {
      state.SkipWithError(base::Message(e.status()).c_str());
      return;
    }
    const store::RunTable table = (*e)->TableFor(1);
    for (std::uint32_t shard = 0; shard < options.shards; ++shard) {
      CHECK((*e)->RunShard(shard, **store, table).ok());
    }
    const double written = CpuSeconds();
    const auto found = (*e)->Collect(**store, table, nullptr);
    CHECK(found.ok());
    const double end = CpuSeconds();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    state.counters["graphs"] = double(found->graphs_by_size.back());
    state.counters["sequences"] = double(found->sequences_by_size.back());
    state.counters["classes"] = double(found->classes);
    state.counters["shared_classes"] = double(found->shared_classes);
    state.counters["cpu_s"] = end - before;
    state.counters["collect_cpu_s"] = end - written;
    state.counters["estimated_cpu_s"] = (*e)->estimate().cpu_seconds;
    state.counters["graphs_per_cpu_s"] = double(found->graphs) / (end - before);
    state.counters["peak_rss_MB"] = double(usage.ru_maxrss) * 1024 / 1e6;
    state.counters["disk_B_per_graph"] = double(found->record_bytes) / double(found->graphs);
    state.counters["disk_MB"] = double(found->record_bytes) / 1e6;
    state.counters["passes"] = found->passes;
  }
  std::filesystem::remove_all(folder);
}

BENCHMARK_CAPTURE(EnumeratesSets, taso_as_released, "taso-as-released")
    ->ArgNames({"operators", "shards", "memory_MiB"})
    ->Args({1, 1, 256})
    ->Args({2, 1, 256})
    ->Args({3, 1, 256})
    ->Args({3, 16, 256})
    ->Args({4, 1, 3072})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon::worker
