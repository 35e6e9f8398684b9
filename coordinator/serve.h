// The entry of the coordinator's role: jobs, work for nodes, packs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/rpc/connection.h"
#include "core/base/status.h"
#include "proto/convert/jobs.h"

namespace grpc {
class ServerBuilder;
class ServerCredentials;
}  // namespace grpc

namespace tenon::board {
class Journal;
}  // namespace tenon::board

namespace tenon::coordinator {

class PackSink;
class Coordinator;

// Where several coordinators share what they know, and agree on who leads.
struct EtcdOptions {
  std::string endpoints;  // HOST:PORT,..; empty: no etcd.
  std::string prefix = "/tenon/";
  rpc::Credentials credentials;
  // A leader that is silent for so long is succeeded; etcd may make it longer.
  std::chrono::seconds lease_ttl{5};
  // Told how long each call took. May be empty; from several threads.
  std::function<void(std::string_view call, bool ok, std::chrono::microseconds took)> on_call;
};

struct ServeOptions {
  std::string listen = "127.0.0.1:0";
  std::string data_directory;  // Of the store, without etcd.
  EtcdOptions etcd;
  // HOST:PORT under which clients reach this coordinator, told by standbys; port 0: the one it
  // listens on; empty: as `listen`.
  std::string advertise;
  // HOST:PORT of the stores, in the order that maps buckets to them; a job keeps the map it was
  // given. Empty: stores that have registered by heartbeat, once there are `min_stores` of them.
  std::vector<std::string> stores;
  std::uint32_t min_stores = 1;

  std::chrono::milliseconds lease_ttl{15'000};
  std::uint32_t waiting_jobs_max = 1000;  // Not ended; above: RESOURCE_EXHAUSTED.
  std::uint32_t running_jobs_max = 4;     // Reduced at a time.
  // Above this number or after this time, ended jobs are forgotten, the oldest first.
  std::size_t ended_jobs_max = 10'000;
  std::chrono::hours ended_jobs_kept_for{30 * 24};
  std::uint64_t worker_memory_bytes = std::uint64_t{4} << 30;  // A job's default and maximum.
  std::uint64_t job_graphs_max = 0;  // Estimated; above: RESOURCE_EXHAUSTED. 0: no limit.
  // What a job would take (coordinator/run/coordinator.h); null: jobs are taken without.
  std::function<StatusOr<convert::JobEstimate>(const convert::JobSpec&)> estimate;
  std::uint32_t proofs_per_task = 4;
  std::chrono::milliseconds straggler_min{5'000};  // No second lease before.
  std::string code_version;                        // Told in the provenance of packs.

  // How to reach the stores.
  rpc::ConnectionOptions to_stores;

  // Null: no TLS.
  std::shared_ptr<grpc::ServerCredentials> credentials;
  // Called before the server starts: adds services (the registry) and interceptors. May be empty.
  std::function<Status(grpc::ServerBuilder& builder)> customize;
  // Told of events worth a line in the log: name, id of a job or a task, detail. May be empty.
  std::function<void(std::string_view event, std::string_view about, std::string_view detail)> log;
  // Given the running coordinator, for metrics and pages; it lives until `on_stopping` has been
  // called. With etcd this comes again with each term.
  std::function<void(Coordinator& coordinator)> on_started;
  std::function<void()> on_stopping;
  // Where packs go; null: the coordinator's own plain sink (coordinator/publish/sink.h).
  std::function<std::unique_ptr<PackSink>(board::Journal& journal)> make_sink;
  std::string signing_key_file;  // Ed25519 (client/registry/keys.h); empty: packs are unsigned.

  std::function<void(int port)> on_listening;  // Once.
};

// Serves until `stop`; then ends leases' waits, job threads and the server. With etcd it is a
// standby first, leads when nobody else does, and is a standby again when its term has ended.
// Blocking. Unavailable: the port cannot be bound; errors of opening the store; what etcd refuses.
Status Serve(const ServeOptions& options, std::stop_token stop);

}  // namespace tenon::coordinator
