// Jobs as plain values, and their conversion from and to messages (jobs.proto).
//
// What comes from a caller is checked completely, and all violations are told at once, as
// INVALID_ARGUMENT with a path for each (convert/status.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "proto/convert/status.h"

namespace tenon::v1 {
class ControlJobRequest;
class GenerationCounts;
class Job;
class JobSpec;
class ListJobsRequest;
class SubmitJobRequest;
}  // namespace tenon::v1

namespace tenon::convert {

using Milliseconds = std::chrono::milliseconds;
// Milliseconds since 1970-01-01 UTC; 0: not yet.
using UnixTime = std::chrono::time_point<std::chrono::system_clock, Milliseconds>;

// The numbers are those of jobs.proto, and persisted.
enum class JobState : std::uint8_t {
  kSubmitted = 1,
  kEnumerating = 2,
  kMatching = 3,
  kReducing = 4,
  kPublishing = 5,
  kDone = 6,
  kFailed = 7,
  kCancelled = 8,
};
std::string_view NameOf(JobState state);  // "enumerating"
constexpr bool HasEnded(JobState s) { return s >= JobState::kDone; }

enum class EnumerationMode : std::uint8_t { kExhaustive = 1, kCanonical = 2 };

// A value type. As it comes out of a message it is valid.
struct JobSpec {
  std::string universe;   // Text form; canonical as it comes out of a message.
  int max_operators = 0;  // 0: what the universe says; never 0 as it comes out of a message.
  EnumerationMode mode = EnumerationMode::kExhaustive;
  std::uint32_t shards = 0;  // 0: the coordinator decides.
  std::string pack_name;
  std::string pack_version;
  int priority = 0;
  std::uint64_t memory_limit_bytes = 0;  // Of a worker's slot; 0: the coordinator's default.
  Milliseconds time_limit{0};            // CPU time of the enumeration; 0: no limit.
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};
inline constexpr std::uint32_t kShardsMax = 65'536;
inline constexpr std::size_t kUniverseTextMax = std::size_t{1} << 20;
inline constexpr int kPriorityMax = 100;
inline constexpr std::uint64_t kTimeLimitMaxMs = std::uint64_t{365} * 86'400'000;

struct SetAside {
  std::uint32_t shard = 0;
  std::string last_error;
  std::vector<std::string> workers;
  friend bool operator==(const SetAside&, const SetAside&) = default;
};

// The figures of common.proto.
struct GenerationCounts {
  std::vector<std::uint64_t> graphs_by_size;  // From size 1.
  std::uint64_t graphs = 0, classes = 0, equivalent_pairs = 0;
  std::uint64_t candidates = 0, proved = 0, refuted = 0, unproved = 0;
  std::uint64_t rules = 0, underivable = 0;
  friend bool operator==(const GenerationCounts&, const GenerationCounts&) = default;
};

// What a job will take (jobs.proto). A value type.
struct JobEstimate {
  double graphs = 0;
  double cpu_ms = 0;
  double memory_bytes = 0;  // Of a slot.
  double disk_bytes = 0;    // On all stores.
  bool extrapolated = false;
  friend bool operator==(const JobEstimate&, const JobEstimate&) = default;
};

// What a coordinator says of a job. A value type.
struct Job {
  std::string id;
  JobSpec spec;
  JobState state = JobState::kSubmitted;
  bool paused = false;
  UnixTime submitted_at, started_at, ended_at;
  std::uint64_t revision = 0;
  std::uint32_t shards_total = 0, shards_done = 0, shards_leased = 0;
  std::vector<SetAside> set_aside;
  std::uint32_t round = 0;
  std::uint64_t proofs_total = 0, proofs_done = 0;
  GenerationCounts counts;
  std::string error;
  std::string pack_reference, pack_address;
  Milliseconds cpu{0};
  std::optional<JobEstimate> estimate;  // In answers to submissions.
  friend bool operator==(const Job&, const Job&) = default;
};

struct SubmitJob {
  std::string request_id;
  JobSpec spec;
  bool dry_run = false;  // Estimates and makes none: the answer has no id.
};
struct ListJobs {
  std::uint32_t page_size = 100;
  std::string page_token;
  std::vector<JobState> states;  // Empty: all.
};
struct ControlJob {
  enum class Action : std::uint8_t { kCancel = 1, kPause = 2, kResume = 3, kSetPriority = 4 };
  std::string id;
  Action action = Action::kCancel;
  int priority = 0;
};

// Whether a text may identify a request, a node or a job: 1 to 64 of [A-Za-z0-9._-].
bool IsId(std::string_view text);

// From messages: everything is checked. InvalidArgument with all violations.
StatusOr<SubmitJob> FromMessage(const v1::SubmitJobRequest& message);
StatusOr<ListJobs> FromMessage(const v1::ListJobsRequest& message);
StatusOr<ControlJob> FromMessage(const v1::ControlJobRequest& message);
// An answer: its spec may be of a later version and is not judged. Unknown states are Internal.
StatusOr<Job> FromMessage(const v1::Job& message);
GenerationCounts FromMessage(const v1::GenerationCounts& message);

void ToMessage(const JobSpec& spec, v1::JobSpec& message);
void ToMessage(const Job& job, v1::Job& message);
void ToMessage(const GenerationCounts& counts, v1::GenerationCounts& message);

}  // namespace tenon::convert
