// Node: the life of a worker or a verifier. It leases tasks, works on them, reports the results,
// and sends heartbeats meanwhile; stores only send heartbeats.
//
// It outlives its coordinator: calls are repeated, and a task goes on while the coordinator is
// away. A task whose lease was lost is stopped; if it was finished anyway, its result is reported
// and taken or not, which makes no difference (work.proto).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "client/rpc/connection.h"
#include "proto/convert/work.h"

namespace tenon::rpc {

// Who sends heartbeats.
struct NodeIdentity {
  std::string id;       // 1 to 64 of [A-Za-z0-9._-].
  std::string role;     // "worker", "verifier" or "store".
  std::string address;  // HOST:PORT; stores must say it.
  std::string version;
};

// "HOST-PID-RANDOM", fit for NodeIdentity::id.
std::string NewNodeId();

struct NodeEvent {
  enum class Kind : std::uint8_t { kLeased, kCompleted, kUnneeded, kReleased, kLost, kTrouble };
  Kind kind = Kind::kTrouble;
  std::string task;     // Empty for trouble with the coordinator.
  std::string message;  // The error, if any.
};

struct NodeOptions {
  NodeIdentity identity;
  std::vector<convert::TaskKind> kinds;
  unsigned slots = 1;  // Tasks at a time.
  Milliseconds lease_wait{10'000};
  Milliseconds heartbeat{3'000};  // Until the coordinator has said how often.
  // For logs and metrics; from several threads, so it must be thread-safe. May be null.
  std::function<void(const NodeEvent& event)> on_event;
};

struct Outcome {
  std::variant<convert::ShardResult, convert::CollectResult, convert::ProofResult,
               convert::JoinResult>
      result;
  Milliseconds cpu{0};
};
// Works on a task in slot number `slot`, from a thread of that slot. `stop`: nobody wants the
// result any more, or the node leaves; CANCELLED is the answer then. Another error gives the task
// back as failed here.
using Work = std::function<StatusOr<Outcome>(unsigned slot, const convert::Task& task,
                                             std::stop_token stop)>;

// Until `stop`; then tasks are stopped and given back, so that others take them at once. Blocking.
// UNAUTHENTICATED, PERMISSION_DENIED, UNIMPLEMENTED, INVALID_ARGUMENT: the coordinator does not
// want such a node. OK after `stop`.
Status RunNode(std::shared_ptr<Connection> coordinator, const NodeOptions& options,
               const Work& work, std::stop_token stop);

// Heartbeats alone, until `stop`; a coordinator that is away is no error. Blocking.
void SendHeartbeats(std::shared_ptr<Connection> coordinator, const NodeIdentity& identity,
                    std::stop_token stop);

}  // namespace tenon::rpc
