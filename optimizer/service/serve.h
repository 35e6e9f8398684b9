// The entry of the optimizer's role.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/rpc/server_limits.h"
#include "core/base/status.h"
#include "optimizer/service/node.h"
#include "optimizer/service/packs.h"

namespace grpc {
class ServerBuilder;
class ServerContextBase;
class ServerCredentials;
}  // namespace grpc

namespace tenon::optimizer {

// A call that has ended.
struct EndedCall {
  std::string request_id, caller;
  CallOutcome outcome = CallOutcome::kDone;
  Status status;
  std::chrono::milliseconds took{0};
  std::uint64_t model_bytes = 0;
};

struct ServeOptions {
  NodeOptions node;
  PackSourceOptions packs;  // Its folder is in that of the node.
  std::chrono::seconds refresh{300};
  std::string listen = "127.0.0.1:0";
  std::shared_ptr<grpc::ServerCredentials> credentials;  // Null: open.
  // Adds other services (health, reflection) and interceptors. May be null.
  std::function<void(grpc::ServerBuilder& builder)> customize;
  // Who calls, for quotas; null or empty: the address he calls from.
  std::function<std::string(const grpc::ServerContextBase& context)> caller_of;
  std::chrono::milliseconds transfer_limit = rpc::kTransferMax;
  // When a stop is requested, calls that run may go on for so long.
  std::chrono::milliseconds drain_limit{120'000};

  std::function<void(int port)> on_listening;
  // Given the running node, for metrics; it lives until `on_stopping` returns. May be null.
  std::function<void(const Node& node)> on_started;
  std::function<void()> on_stopping;
  std::function<void(const EndedCall& call)> on_call;  // Thread-safe; may be null.
};

// Serves until `stop`, then lets calls that run go on, and no others. Blocking. Errors of
// Node::Open; those of the first look at packs that come from files; Unavailable: the port cannot
// be bound.
Status Serve(const ServeOptions& options, std::stop_token stop);

}  // namespace tenon::optimizer
