#include "worker/tasks.h"

#include <time.h>

#include <algorithm>

#include <fmt/format.h>

#include "client/registry/artifact.h"
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

// Of FoundClasses or an Enumeration.
template <class Found>
convert::CollectResult ResultOf(const Found& found, std::string_view artifact) {
  return {.graphs_by_size = found.graphs_by_size,
          .graphs = found.graphs,
          .classes = found.classes,
          .equivalent_pairs = found.equivalent_pairs,
          .artifact_bytes = artifact.size(),
          .artifact_sha256 = registry::ToHex(registry::Sha256(artifact))};
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
  } else if (const auto* join = std::get_if<convert::JoinTask>(&task.work)) {
    ASSIGN_OR_RETURN(out.result, RunJoin(*join, stop));
  } else {
    return base::InvalidArgument(fmt::format("task {}: a worker makes no proofs", task.id));
  }
  out.cpu = ThreadCpu() - before;
  return out;
}

StatusOr<Enumerator*> TaskRunner::Prepared(const convert::EnumerationTask& task,
                                           const std::stop_token& stop) {
  const auto progress = [stop](const Progress&) { return !stop.stop_requested(); };
  convert::EnumerationTask key = task;
  key.stores = {};
  if (enumerator_ && key == key_) {
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
  ASSIGN_OR_RETURN(Enumerator * e, Prepared(task.enumeration, stop));
  ASSIGN_OR_RETURN(const auto stores, connections_.Open(task.enumeration.stores));
  RemoteSink sink(task.enumeration.stores, stores, options_.store_patience, stop);
  const std::uint64_t bytes = e->record_bytes();
  RETURN_IF_ERROR(e->RunShard(task.shard, sink, TableOf(task.enumeration)));
  return convert::ShardResult{
      .graphs = e->graphs(), .records = e->records(), .bytes = e->record_bytes() - bytes};
}

StatusOr<convert::CollectResult> TaskRunner::RunCollect(const convert::CollectTask& task,
                                                        const std::stop_token& stop) {
  ASSIGN_OR_RETURN(Enumerator * e, Prepared(task.enumeration, stop));
  ASSIGN_OR_RETURN(const auto stores, connections_.Open(task.enumeration.stores));
  const RemoteSource source(task.enumeration.stores, stores, options_.store_patience, stop,
                            task.first, task.end);
  ASSIGN_OR_RETURN(const FoundClasses found, e->CollectPart(source, TableOf(task.enumeration)));
  const std::string bytes = EncodeFound(found);
  convert::CollectResult out = ResultOf(found, bytes);
  RETURN_IF_ERROR(rpc::StoreClient(stores.at(task.store), options_.store_patience)
                      .PutArtifact(task.enumeration.stores.table, task.artifact, bytes,
                                   out.artifact_sha256, stop));
  return out;
}

StatusOr<convert::JoinResult> TaskRunner::RunJoin(const convert::JoinTask& task,
                                                  const std::stop_token& stop) {
  ASSIGN_OR_RETURN(Enumerator * e, Prepared(task.enumeration, stop));
  ASSIGN_OR_RETURN(const auto stores, connections_.Open(task.enumeration.stores));
  std::vector<FoundClasses> parts;
  for (const convert::JoinTask::Part& part : task.parts) {
    const rpc::StoreClient store(stores.at(part.store), options_.store_patience);
    ASSIGN_OR_RETURN(const std::string bytes,
                     registry::GetArtifact(store, task.enumeration.stores.table, part.artifact,
                                           part.bytes, part.sha256, stop));
    ASSIGN_OR_RETURN(FoundClasses found, DecodeFound(bytes));
    parts.push_back(std::move(found));
  }
  auto joined = std::move(*e).Join(std::move(parts));
  enumerator_.reset();
  RETURN_IF_ERROR(joined.status());
  const Enumeration& found = *joined;
  const std::string bytes = graph::EncodeClasses(
      graph::Fragment(universe_, found.table, found.class_at, found.class_members));
  convert::CollectResult out = ResultOf(found, bytes);
  RETURN_IF_ERROR(rpc::StoreClient(stores[0], options_.store_patience)
                      .PutArtifact(task.enumeration.stores.table, task.artifact, bytes,
                                   out.artifact_sha256, stop));
  return convert::JoinResult{std::move(out)};
}

}  // namespace tenon::worker
