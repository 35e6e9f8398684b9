// The store's service (store.proto) over a Store, on a gRPC server of its own.
//
// Writing is group commit: streams only check and queue their runs; one thread writes whatever has
// queued up in one synced batch and then acknowledges it, so that a hundred workers cost about as
// many syncs as one. A stream is read no further while 8 MiB of it wait, which holds its client
// back through HTTP/2's flow control.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/rpc/server_limits.h"
#include "core/base/status.h"
#include "store/store.h"

namespace grpc {
class ServerBuilder;
class ServerCredentials;
}  // namespace grpc

namespace tenon::store {

struct ServerOptions {
  std::string listen = "127.0.0.1:0";
  std::shared_ptr<grpc::ServerCredentials> credentials;  // Null: open.
  // Adds other services and interceptors.
  std::function<void(grpc::ServerBuilder& builder)> customize;
  // Intake stops while less than this is free.
  std::uint64_t disk_reserve_bytes = std::uint64_t{256} << 20;
  // For tests; null: Store::FreeBytes.
  std::function<StatusOr<std::uint64_t>()> free_bytes;
  int threads_max = 256;
  // Of an artifact or a scan (client/rpc/server_limits.h).
  std::chrono::milliseconds transfer_limit = rpc::kTransferMax;
};

// For metrics. Counters are of this process.
struct ServerFigures {
  std::uint64_t batches = 0, runs = 0, run_bytes = 0;  // Written, synced and acknowledged.
  std::uint64_t queued_bytes = 0;                      // Of runs that wait to be written.
  std::uint64_t refused_batches = 0;                   // For want of space, and other errors.
  std::uint64_t disk_free_bytes = 0;                   // 0 when it cannot be found out.
  bool accepts_writes = false;
};

// Serves from Start until it is destroyed. Thread-safe.
class Server {
 public:
  // `store` outlives the server. Unavailable: the port cannot be bound.
  static StatusOr<std::unique_ptr<Server>> Start(Store& store, const ServerOptions& options);
  // Ends calls in progress; what was acknowledged is durable.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  ServerFigures figures() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::store
