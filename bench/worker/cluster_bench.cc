// What the cluster costs beside the embedded enumeration, in CPU seconds of all its parts: the same
// shards through TaskRunners and two stores on gRPC, all in this process, so that one clock counts
// them. The coordinator's calls, few and small, are not in it.
#include <filesystem>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/cpu_seconds.h"
#include "core/base/check.h"
#include "proto/convert/universe.h"
#include "store/service.h"
#include "worker/enumerate.h"
#include "worker/tasks.h"

namespace tenon::worker {
namespace {

constexpr std::uint32_t kBucketBits = 5, kBuckets = 1 << kBucketBits, kParts = 8;

void BM_Embedded(benchmark::State& state) {
  const auto universe = *convert::LoadUniverse("matrix");
  for (auto _ : state) {
    const double before = CpuSeconds();
    const auto found = Enumerate(universe, {.max_operators = int(state.range(0)), .shards = 8});
    CHECK(found.ok());
    state.counters["cpu_seconds"] = CpuSeconds() - before;
    state.counters["graphs"] = double(found->graphs);
  }
}

void BM_Cluster(benchmark::State& state) {
  const std::string folder = std::filesystem::temp_directory_path() / "tenon-cluster-bench";
  for (auto _ : state) {
    std::filesystem::remove_all(folder);
    const double before = CpuSeconds();
    std::vector<std::unique_ptr<store::Store>> stores;
    std::vector<std::unique_ptr<store::Server>> servers;
    convert::EnumerationTask task{
        .universe = convert::CanonicalText(*convert::LoadUniverse("matrix")),
        .max_operators = int(state.range(0)),
        .shards = 8,
        .stores = {.table = 1, .bucket_bits = kBucketBits}};
    for (int k = 0; k < 2; ++k) {
      stores.push_back(*store::Store::Open(fmt::format("{}/{}", folder, k)));
      servers.push_back(*store::Server::Start(*stores.back(), {}));
      task.stores.endpoints.push_back(fmt::format("127.0.0.1:{}", servers.back()->port()));
    }
    const double opened = CpuSeconds();
    EnumerateOptions alone;
    alone.max_operators = task.max_operators;
    CHECK(Enumerator::Prepare(*convert::LoadUniverse("matrix"), alone).ok());
    const double prepared = CpuSeconds();
    TaskRunner runner({});
    for (std::uint32_t shard = 0; shard < task.shards; ++shard) {
      CHECK(runner.Run({.id = "t", .work = convert::ShardTask{task, shard}}, {}).ok());
    }
    const double sharded = CpuSeconds();
    convert::JoinTask join{.enumeration = task, .parts = {}, .artifact = "c"};
    double part_bytes = 0;
    const auto collect = [&](std::uint32_t parts) {
      const double begin = CpuSeconds();
      join.parts.clear();
      part_bytes = 0;
      for (std::uint32_t k = 0; k < parts; ++k) {
        const convert::CollectTask part{task, fmt::format("p{}", k), k * kBuckets / parts,
                                        (k + 1) * kBuckets / parts, k % 2};
        const auto collected = runner.Run({.id = "t", .work = part}, {});
        CHECK(collected.ok());
        const auto& result = std::get<convert::CollectResult>(collected->result);
        part_bytes += double(result.artifact_bytes);
        join.parts.push_back(
            {part.artifact, part.store, result.artifact_bytes, result.artifact_sha256});
      }
      return CpuSeconds() - begin;
    };
    const double one_part = collect(1), parts = collect(kParts);
    const double before_join = CpuSeconds();
    const auto joined = runner.Run({.id = "t", .work = join}, {});
    CHECK(joined.ok());
    const double end = CpuSeconds();
    state.counters["prepare_cpu_seconds"] = prepared - opened;
    state.counters["shards_cpu_seconds"] = sharded - prepared;
    state.counters["one_part_cpu_seconds"] = one_part;
    state.counters["parts_cpu_seconds"] = parts;
    state.counters["join_cpu_seconds"] = end - before_join;
    state.counters["cpu_seconds"] = end - before - one_part - (prepared - opened);
    state.counters["part_bytes"] = part_bytes;
    const convert::CollectResult& all = std::get<convert::JoinResult>(joined->result).all;
    state.counters["graphs"] = double(all.graphs);
    state.counters["artifact_bytes"] = double(all.artifact_bytes);
  }
  std::filesystem::remove_all(folder);
}

BENCHMARK(BM_Embedded)->Arg(3)->Arg(4)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Cluster)->Arg(3)->Arg(4)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon::worker
