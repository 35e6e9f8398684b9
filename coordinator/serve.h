// The entry of the coordinator's role: jobs, work for nodes, packs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace grpc {
class Service;
class ServerBuilder;
}  // namespace grpc

namespace tenon::store {
class Store;
}  // namespace tenon::store

namespace tenon::coordinator {

class PackSink;
class Coordinator;

struct ServeOptions {
  std::string listen = "127.0.0.1:0";
  std::string data_directory;
  // HOST:PORT of the stores, in the order that maps buckets to them; a job keeps the map it was
  // given. Empty: stores that have registered by heartbeat, once there are `min_stores` of them.
  std::vector<std::string> stores;
  std::uint32_t min_stores = 1;

  std::chrono::milliseconds lease_ttl{15'000};
  std::uint32_t waiting_jobs_max = 1000;  // Not ended; above: RESOURCE_EXHAUSTED.
  std::uint32_t running_jobs_max = 4;     // Reduced at a time.
  std::uint64_t worker_memory_bytes = std::uint64_t{4} << 30;  // A job's default and maximum.
  std::chrono::milliseconds time_limit{std::chrono::hours(24)};
  std::uint32_t proofs_per_task = 4;
  unsigned service_threads = 8;

  // The token and TLS with which the coordinator reads artifacts from the stores: see
  // client/rpc/connection.h. Kept as a function so that this header needs none of it.
  std::string store_token;

  // Called before the server starts: adds services (the registry), credentials, interceptors and
  // the listening port. Empty: `listen` without TLS.
  std::function<Status(grpc::ServerBuilder& builder, store::Store& store)> customize;
  // Where packs go; null: the coordinator's own plain sink (coordinator/publish/sink.h).
  std::function<std::unique_ptr<PackSink>(store::Store& store)> make_sink;
  std::string signing_key_file;  // Ed25519 (client/registry/keys.h); empty: packs are unsigned.

  std::function<void(int port)> on_listening;
};

// Serves until `stop`; then ends leases' waits, job threads and the server. Blocking. Unavailable:
// the port cannot be bound; errors of opening the store.
Status Serve(const ServeOptions& options, std::stop_token stop);

}  // namespace tenon::coordinator
