// The board's durable records: keys and bytes (docs/formats/coordinator.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "proto/convert/jobs.h"
#include "proto/convert/work.h"

namespace tenon::board {

using convert::JobSpec;
using convert::JobState;
using convert::Milliseconds;
using convert::UnixTime;

// Written once, when a job is submitted.
struct SubmitRecord {
  std::string request_id;
  JobSpec spec;
  UnixTime submitted_at;
  friend bool operator==(const SubmitRecord&, const SubmitRecord&) = default;
};

// Written once, when its enumeration starts.
struct StartRecord {
  UnixTime started_at;
  std::uint32_t shards = 1;
  std::uint32_t bucket_bits = 0;
  std::uint64_t table = 0;          // Random, so that no two coordinators meet in one.
  std::vector<std::string> stores;  // HOST:PORT, or the id of a node that tells its address.
  friend bool operator==(const StartRecord&, const StartRecord&) = default;
};

// What people change, and how it ended.
struct StatusRecord {
  bool paused = false;
  int priority = 0;
  // kSubmitted: it has not ended. Else kDone, kFailed or kCancelled.
  JobState end = JobState::kSubmitted;
  UnixTime ended_at;
  std::string error, pack_reference, pack_address;
  convert::GenerationCounts counts;
  std::uint32_t round = 0;
  Milliseconds cpu{0};
  std::uint32_t shards_done = 0;  // When it ended.
  friend bool operator==(const StatusRecord&, const StatusRecord&) = default;
};

// In how many parts, ranges of buckets of one length, the classes are collected. Persistent: parts
// that were collected before a restart are joined with those after it.
std::uint32_t PartsOf(const StartRecord& start);

// A shard that was done.
struct ShardRecord {
  convert::ShardResult result;
  Milliseconds cpu{0};
  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

// A part that was collected, or the join of all of them.
struct CollectRecord {
  convert::CollectResult result;
  Milliseconds cpu{0};
  friend bool operator==(const CollectRecord&, const CollectRecord&) = default;
};

// The bytes; decoding checks everything. DataLoss.
std::string Encode(const SubmitRecord& record);
std::string Encode(const StartRecord& record);
std::string Encode(const StatusRecord& record);
std::string Encode(const ShardRecord& record);
std::string Encode(const CollectRecord& record);
std::string Encode(const convert::SetAside& record);
std::string Encode(const convert::ProofVerdict& verdict);  // Without `cached`.
StatusOr<SubmitRecord> DecodeSubmit(std::string_view bytes);
StatusOr<StartRecord> DecodeStart(std::string_view bytes);
StatusOr<StatusRecord> DecodeStatus(std::string_view bytes);
StatusOr<ShardRecord> DecodeShard(std::string_view bytes);
StatusOr<CollectRecord> DecodeCollect(std::string_view bytes);
StatusOr<convert::SetAside> DecodeSetAside(std::string_view bytes);
StatusOr<convert::ProofVerdict> DecodeVerdict(std::string_view bytes);

// Keys of Family::kJobs.
inline constexpr std::string_view kEpochKey = "epoch";
enum class JobKey : char {
  kSubmit = 's',
  kStart = 'b',
  kStatus = 'e',
  kShard = 'd',
  kCollect = 'c',
  kSetAside = 'p',
  kTable = 'x',  // Its tables in the stores are to be dropped.
};
std::string KeyOf(JobKey kind, std::uint64_t job);
std::string KeyOf(JobKey kind, std::uint64_t job, std::uint32_t shard);
// Keys of Family::kVerdicts: of one job, whatever the verdict; and of everyone, repeatable ones.
std::string JobVerdictKey(std::uint64_t job, std::string_view rule);
std::string VerdictKey(std::uint64_t semantics, std::uint32_t budget_scale, std::string_view rule);

}  // namespace tenon::board
