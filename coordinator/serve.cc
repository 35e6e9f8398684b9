#include "coordinator/serve.h"

#include <algorithm>
#include <optional>
#include <random>

#include <fmt/core.h>

#include "client/registry/keys.h"
#include "client/registry/sha256.h"
#include "client/rpc/store_client.h"
#include "coordinator/run/coordinator.h"
#include "coordinator/service.h"
#include "core/pack/pack.h"
#include "proto/convert/universe.h"
#include "store/store.h"

namespace tenon::coordinator {
namespace {

constexpr std::uint64_t kArtifactBytesMax = std::uint64_t{16} << 30;

board::Now SystemTime() {
  return {std::chrono::steady_clock::now(),
          std::chrono::time_point_cast<convert::Milliseconds>(std::chrono::system_clock::now())};
}

StatusOr<rpc::StoreClient> ClientOf(const std::string& endpoint, const ServeOptions& options,
                                    rpc::Milliseconds patience) {
  ASSIGN_OR_RETURN(auto connection, rpc::Connection::Open(endpoint, options.to_stores));
  return rpc::StoreClient(std::move(connection), patience);
}

StatusOr<graph::TermClasses> ReadClasses(const board::Collected& job, const ServeOptions& options,
                                         std::stop_token stop) {
  if (job.result.artifact_bytes > kArtifactBytesMax) {
    return base::DataLoss(
        fmt::format("classes of {} bytes: more than can be", job.result.artifact_bytes));
  }
  ASSIGN_OR_RETURN(const rpc::StoreClient client,
                   ClientOf(job.stores.endpoints.at(0), options, std::chrono::seconds(30)));
  ASSIGN_OR_RETURN(const std::string bytes,
                   client.GetArtifact(job.stores.table, job.artifact,
                                      std::max<std::uint64_t>(job.result.artifact_bytes, 1), stop));
  if (registry::ToHex(registry::Sha256(bytes)) != job.result.artifact_sha256) {
    return base::DataLoss(fmt::format("{}: artifact '{}' is not what its collector wrote",
                                      job.stores.endpoints[0], job.artifact));
  }
  ASSIGN_OR_RETURN(const graph::Universe universe,
                   convert::ParseUniverse(job.spec.universe, job.id));
  return graph::DecodeClasses(universe, bytes);
}

Status DropTable(const board::Table& table, const ServeOptions& options, std::stop_token stop) {
  Status first;
  for (const std::string& endpoint : table.endpoints) {
    if (stop.stop_requested()) return absl::CancelledError("the coordinator stops");
    ASSIGN_OR_RETURN(const rpc::StoreClient client,
                     ClientOf(endpoint, options, std::chrono::seconds(2)));
    const Status status = client.DropTable(table.table);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace

Status Serve(const ServeOptions& options, std::stop_token stop) {
  ASSIGN_OR_RETURN(const auto store, store::Store::Open(options.data_directory));
  std::optional<registry::SigningKey> key;
  if (!options.signing_key_file.empty()) {
    ASSIGN_OR_RETURN(registry::SigningKey loaded, registry::LoadKey(options.signing_key_file));
    key.emplace(std::move(loaded));
  }
  const auto sink = options.make_sink ? options.make_sink(*store) : MakeStoreSink(*store);
  board::StoreJournal journal(*store);
  std::random_device device;
  World world{.journal = journal,
              .sink = *sink,
              .key = key ? &*key : nullptr,
              .code_version = options.code_version,
              .now = SystemTime,
              .read_classes = [&](const board::Collected& job,
                                  std::stop_token s) { return ReadClasses(job, options, s); },
              .drop_table = [&](const board::Table& table,
                                std::stop_token s) { return DropTable(table, options, s); },
              .log = options.log};
  board::Options board;
  board.lease_ttl = options.lease_ttl;
  board.straggler_min = options.straggler_min;
  board.waiting_jobs_max = options.waiting_jobs_max;
  board.proofs_per_task = options.proofs_per_task;
  board.worker_memory_bytes = options.worker_memory_bytes;
  board.semantics_version = pack::kSemanticsVersion;
  board.stores = options.stores;
  board.min_stores = options.min_stores;
  board.random = [&] { return std::uint64_t{device()} << 32 | device(); };
  ASSIGN_OR_RETURN(const auto coordinator,
                   Coordinator::Start(std::move(world), board, options.running_jobs_max));
  if (options.on_started) options.on_started(*coordinator);
  const Status served = ServeGrpc(options, *store, *coordinator, stop);
  if (options.on_stopping) options.on_stopping();
  return served;
}

}  // namespace tenon::coordinator
