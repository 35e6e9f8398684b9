#include "worker/tasks.h"

#include <time.h>

#include <algorithm>

#include <fmt/format.h>

#include "client/registry/sha256.h"
#include "core/graph/classes.h"
#include "proto/convert/universe.h"

namespace tenon::worker {
namespace {

constexpr double kTimeSlack = 4;

rpc::Milliseconds ThreadCpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::duration_cast<rpc::Milliseconds>(std::chrono::seconds(t.tv_sec) +
                                                       std::chrono::nanoseconds(t.tv_nsec));
}

store::RunTable TableOf(const convert::EnumerationTask& task) {
  return {.job = task.stores.table, .bucket_bits = int(task.stores.bucket_bits)};
}

}  // namespace

TaskRunner::TaskRunner(TaskOptions options)
    : options_(std::move(options)), connections_(options_.stores) {}

StatusOr<rpc::Outcome> TaskRunner::Run(const convert::Task& task, std::stop_token stop) {
  const rpc::Milliseconds before = ThreadCpu();
  rpc::Outcome out;
  if (const auto* shard = std::get_if<convert::ShardTask>(&task.work)) {
    ASSIGN_OR_RETURN(out.result, RunShard(*shard, stop));
  } else if (const auto* collect = std::get_if<convert::CollectTask>(&task.work)) {
    ASSIGN_OR_RETURN(out.result, RunCollect(*collect, stop));
  } else {
    return base::InvalidArgument(fmt::format("task {}: a worker makes no proofs", task.id));
  }
  out.cpu = ThreadCpu() - before;
  return out;
}

StatusOr<Enumerator*> TaskRunner::Prepared(const convert::EnumerationTask& task, bool collect,
                                           const std::stop_token& stop) {
  const auto progress = [stop](const Progress&) { return !stop.stop_requested(); };
  convert::EnumerationTask key = task;
  key.stores = {};
  // Collecting uses an enumerator up; only shards share one.
  if (!collect && enumerator_ && key == key_) {
    enumerator_->SetProgress(progress);
    return enumerator_.get();
  }
  enumerator_.reset();  // First: two may not fit in memory.
  ASSIGN_OR_RETURN(universe_, convert::ParseUniverse(task.universe, "the task's universe"));
  EnumerateOptions options;
  options.max_operators = task.max_operators;
  options.mode =
      task.mode == convert::EnumerationMode::kCanonical ? Mode::kCanonical : Mode::kExhaustive;
  options.shards = task.shards;
  options.seed = task.seed;
  options.memory_limit_bytes = task.memory_limit_bytes;
  if (options_.memory_limit_bytes != 0) {
    options.memory_limit_bytes =
        task.memory_limit_bytes == 0
            ? options_.memory_limit_bytes
            : std::min(options_.memory_limit_bytes, task.memory_limit_bytes);
  }
  // The coordinator has refused what is above; on a busy machine the same work seems longer.
  options.time_limit_seconds = kTimeSlack * std::chrono::duration<double>(task.time_limit).count();
  options.keep_all = false;  // Only what shares its class travels on.
  options.progress = progress;
  ASSIGN_OR_RETURN(enumerator_, Enumerator::Prepare(universe_, options));
  key_ = std::move(key);
  ++prepared_;
  return enumerator_.get();
}

StatusOr<convert::ShardResult> TaskRunner::RunShard(const convert::ShardTask& task,
                                                    const std::stop_token& stop) {
  ASSIGN_OR_RETURN(Enumerator * e, Prepared(task.enumeration, false, stop));
  ASSIGN_OR_RETURN(const auto stores, connections_.Open(task.enumeration.stores));
  RemoteSink sink(task.enumeration.stores, stores, options_.store_patience, stop);
  const std::uint64_t bytes = e->record_bytes();
  RETURN_IF_ERROR(e->RunShard(task.shard, sink, TableOf(task.enumeration)));
  return convert::ShardResult{
      .graphs = e->graphs(), .records = e->records(), .bytes = e->record_bytes() - bytes};
}

StatusOr<convert::CollectResult> TaskRunner::RunCollect(const convert::CollectTask& task,
                                                        const std::stop_token& stop) {
  ASSIGN_OR_RETURN(Enumerator * e, Prepared(task.enumeration, true, stop));
  ASSIGN_OR_RETURN(const auto stores, connections_.Open(task.enumeration.stores));
  const RemoteSource source(task.enumeration.stores, stores, options_.store_patience, stop);
  auto collected = std::move(*e).Collect(source, TableOf(task.enumeration));
  enumerator_.reset();
  RETURN_IF_ERROR(collected.status());
  const Enumeration& found = *collected;
  const std::string bytes = graph::EncodeClasses(
      graph::Fragment(universe_, found.table, found.class_at, found.class_members));
  convert::CollectResult out{.graphs_by_size = found.graphs_by_size,
                             .graphs = found.graphs,
                             .classes = found.classes,
                             .equivalent_pairs = found.equivalent_pairs,
                             .artifact_bytes = bytes.size(),
                             .artifact_sha256 = registry::ToHex(registry::Sha256(bytes))};
  RETURN_IF_ERROR(rpc::StoreClient(stores[0], options_.store_patience)
                      .PutArtifact(task.enumeration.stores.table, task.artifact, bytes,
                                   out.artifact_sha256, stop));
  return out;
}

}  // namespace tenon::worker
