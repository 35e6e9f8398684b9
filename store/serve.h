// The entry of the store's role.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "client/rpc/connection.h"
#include "client/rpc/server_limits.h"
#include "core/base/status.h"

namespace grpc {
class ServerBuilder;
class ServerCredentials;
}  // namespace grpc

namespace tenon::store {

class Server;

struct ServeOptions {
  std::string directory;
  std::string listen = "127.0.0.1:0";
  std::shared_ptr<grpc::ServerCredentials> credentials;  // Null: open.
  // Adds other services (health, reflection) and interceptors. May be null.
  std::function<void(grpc::ServerBuilder& builder)> customize;
  std::uint64_t disk_reserve_bytes = std::uint64_t{256} << 20;
  std::chrono::milliseconds transfer_limit = rpc::kTransferMax;
  std::size_t cache_bytes = std::size_t{64} << 20;

  // The coordinator to register with by heartbeats; empty: none.
  std::string coordinator;
  rpc::ConnectionOptions connection;
  // A job remembers its stores by these: give a store the same id for life. Empty: a new one.
  std::string node_id;
  std::string
      advertise;  // HOST:PORT under which others reach it, port 0: its own; empty: 127.0.0.1.
  std::string version;

  std::function<void(int port)> on_listening;
  // Given the running server, for metrics; it lives until `on_stopping` returns. May be null.
  std::function<void(const Server& server)> on_started;
  std::function<void()> on_stopping;
};

// Serves until `stop`. Blocking. Errors of Store::Open; Unavailable: the port cannot be bound.
Status Serve(const ServeOptions& options, std::stop_token stop);

}  // namespace tenon::store
