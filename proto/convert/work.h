// Work as plain values, and their conversion from and to messages (work.proto): tasks, leases and
// results.
//
// Both sides check what they receive: a coordinator does not trust a node's result, nor a node a
// coordinator's task. InvalidArgument names the field.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "proto/convert/jobs.h"

namespace tenon::v1 {
class CompleteRequest;
class HeartbeatRequest;
class HeartbeatResponse;
class LeaseRequest;
class LeaseResponse;
class ReleaseRequest;
class Task;
}  // namespace tenon::v1

namespace tenon::convert {

// The numbers are those of work.proto.
enum class TaskKind : std::uint8_t { kShard = 1, kCollect = 2, kProofs = 3, kJoin = 4 };

// Store k of n has the buckets [k*2^bits/n, (k+1)*2^bits/n).
struct StoreMap {
  std::vector<std::string> endpoints;  // HOST:PORT, in order; 1 to 256.
  std::uint64_t table = 0;
  std::uint32_t bucket_bits = 0;  // 0 to 20.
  friend bool operator==(const StoreMap&, const StoreMap&) = default;
};

struct EnumerationTask {
  std::string universe;
  int max_operators = 0;
  EnumerationMode mode = EnumerationMode::kExhaustive;
  std::uint32_t shards = 1;
  std::uint64_t seed = 0;
  std::uint64_t memory_limit_bytes = 0;
  Milliseconds time_limit{0};  // CPU time of all shards together; 0: no limit.
  StoreMap stores;
  friend bool operator==(const EnumerationTask&, const EnumerationTask&) = default;
};
struct ShardTask {
  EnumerationTask enumeration;
  std::uint32_t shard = 0;
  friend bool operator==(const ShardTask&, const ShardTask&) = default;
};
struct CollectTask {
  EnumerationTask enumeration;
  std::string artifact;              // Of the part.
  std::uint32_t first = 0, end = 1;  // Buckets.
  std::uint32_t store = 0;           // Where the artifact is put, by number in the map.
  friend bool operator==(const CollectTask&, const CollectTask&) = default;
};
struct JoinTask {
  struct Part {
    std::string artifact;
    std::uint32_t store = 0;
    std::uint64_t bytes = 0;
    std::string sha256;  // Hexadecimal.
    friend bool operator==(const Part&, const Part&) = default;
  };
  EnumerationTask enumeration;
  std::vector<Part> parts;  // 1 to 1024.
  std::string artifact;     // On store 0.
  friend bool operator==(const JoinTask&, const JoinTask&) = default;
};
struct ProofTask {
  std::uint64_t semantics_version = 0;
  std::vector<std::string> rules;  // Canonical bytes; 1 to 256.
  std::uint32_t budget_scale = 1;  // 1 to 1000.
  friend bool operator==(const ProofTask&, const ProofTask&) = default;
};

struct Task {
  std::string id;  // "JOB/shard/7", "JOB/collect/2", "JOB/join", "JOB/proofs/3/12"
  std::string job_id;
  std::variant<ShardTask, CollectTask, ProofTask, JoinTask> work;  // In the order of TaskKind.
  friend bool operator==(const Task&, const Task&) = default;
};
TaskKind KindOf(const Task& task);

struct Lease {
  std::string id;
  Task task;
  Milliseconds ttl{0};
  std::uint32_t attempt = 1;
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct LeaseRequest {
  std::string request_id;
  std::string node_id;
  std::vector<TaskKind> kinds;
  std::uint32_t max_leases = 1;  // 1 to 64.
  Milliseconds wait{0};          // At most 30 s.
  friend bool operator==(const LeaseRequest&, const LeaseRequest&) = default;
};
struct LeaseResponse {
  std::vector<Lease> leases;
  Milliseconds retry_after{0};
};
struct Heartbeat {
  std::string node_id;
  std::string role;     // "worker", "verifier" or "store".
  std::string address;  // A store must have one.
  std::string version;
  std::vector<std::string> lease_ids;
  bool draining = false;
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
struct HeartbeatResponse {
  std::vector<std::string> lost_lease_ids;
  Milliseconds next_heartbeat{0};
};

struct ShardResult {
  std::uint64_t graphs = 0, records = 0, bytes = 0;
  friend bool operator==(const ShardResult&, const ShardResult&) = default;
};
struct CollectResult {
  std::vector<std::uint64_t> graphs_by_size;
  std::uint64_t graphs = 0, classes = 0, equivalent_pairs = 0;
  std::uint64_t artifact_bytes = 0;
  std::string artifact_sha256;  // Hexadecimal.
  friend bool operator==(const CollectResult&, const CollectResult&) = default;
};

// Of all parts.
struct JoinResult {
  CollectResult all;
  friend bool operator==(const JoinResult&, const JoinResult&) = default;
};

// The numbers are those of work.proto, and persisted.
enum class VerdictKind : std::uint8_t {
  kProved = 1,
  kRefuted = 2,
  kUnproved = 3,
  kUnknown = 4,
  kIllFormed = 5,
  kVacuous = 6,
};
struct ProofVerdict {
  VerdictKind kind = VerdictKind::kUnknown;
  std::string reason;
  bool cached = false;
  bool repeatable = false;
  std::uint64_t rlimit = 0;
  std::string certificate;
  friend bool operator==(const ProofVerdict&, const ProofVerdict&) = default;
};
struct ProofResult {
  std::vector<ProofVerdict> verdicts;
  friend bool operator==(const ProofResult&, const ProofResult&) = default;
};

struct Complete {
  std::string lease_id;
  std::string task_id;
  std::string node_id;
  Milliseconds cpu{0};
  std::variant<ShardResult, CollectResult, ProofResult, JoinResult> result;  // As TaskKind.
  friend bool operator==(const Complete&, const Complete&) = default;
};
struct Release {
  std::string lease_id;
  std::string task_id;
  std::string node_id;
  std::string error;  // Empty: the node leaves, and the attempt does not count.
  friend bool operator==(const Release&, const Release&) = default;
};

StatusOr<Task> FromMessage(const v1::Task& message);
StatusOr<LeaseRequest> FromMessage(const v1::LeaseRequest& message);
StatusOr<LeaseResponse> FromMessage(const v1::LeaseResponse& message);
StatusOr<Heartbeat> FromMessage(const v1::HeartbeatRequest& message);
HeartbeatResponse FromMessage(const v1::HeartbeatResponse& message);
StatusOr<Complete> FromMessage(const v1::CompleteRequest& message);
StatusOr<Release> FromMessage(const v1::ReleaseRequest& message);

void ToMessage(const Task& task, v1::Task& message);
void ToMessage(const LeaseRequest& request, v1::LeaseRequest& message);
void ToMessage(const LeaseResponse& response, v1::LeaseResponse& message);
void ToMessage(const Heartbeat& heartbeat, v1::HeartbeatRequest& message);
void ToMessage(const HeartbeatResponse& response, v1::HeartbeatResponse& message);
void ToMessage(const Complete& complete, v1::CompleteRequest& message);
void ToMessage(const Release& release, v1::ReleaseRequest& message);

}  // namespace tenon::convert
