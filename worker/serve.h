// The entry of the worker's role: a node that enumerates.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "client/rpc/node.h"
#include "core/base/status.h"

namespace tenon::worker {

struct ServeOptions {
  std::string coordinator;            // HOST:PORT
  rpc::ConnectionOptions connection;  // To the coordinator and the stores.
  std::string node_id;                // Empty: a new one.
  std::string version;
  unsigned slots = 1;                    // Tasks at a time; each has its own memory.
  std::uint64_t memory_limit_bytes = 0;  // Of a slot; 0: what the task says.
  rpc::Milliseconds store_patience = std::chrono::minutes(5);
  std::function<void(const rpc::NodeEvent& event)> on_event;  // Thread-safe; may be null.
};

// Works until `stop`, then gives its tasks back. Blocking. InvalidArgument: the address; else
// errors of rpc::RunNode.
Status Serve(const ServeOptions& options, std::stop_token stop);

}  // namespace tenon::worker
