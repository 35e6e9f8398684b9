// WorkClient: what a node asks a coordinator.
#pragma once

#include <memory>
#include <stop_token>

#include "client/rpc/connection.h"
#include "proto/convert/work.h"

namespace tenon::rpc {

// Calls repeat themselves while the coordinator cannot be reached: Lease for 10 s beyond its wait,
// Heartbeat for 2 s (the next one comes), Complete and Release for as long as `limit` says.
// Errors: work.proto. Thread-safe.
class WorkClient {
 public:
  explicit WorkClient(std::shared_ptr<Connection> connection);

  // An empty request id is replaced by a fresh one. `stop` ends the wait: CANCELLED.
  StatusOr<convert::LeaseResponse> Lease(convert::LeaseRequest request,
                                         std::stop_token stop = {}) const;
  StatusOr<convert::HeartbeatResponse> Heartbeat(const convert::Heartbeat& heartbeat) const;
  // Whether the result was needed.
  StatusOr<bool> Complete(const convert::Complete& complete, std::stop_token stop = {},
                          Milliseconds limit = std::chrono::minutes(5)) const;
  Status Release(const convert::Release& release, std::stop_token stop = {},
                 Milliseconds limit = kQuickCall) const;

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace tenon::rpc
