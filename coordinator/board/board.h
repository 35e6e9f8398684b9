// Board: the coordinator's heart. Jobs, their tasks, who works on what.
//
// A job goes through its states (jobs.proto): its shards are enumerated, its classes collected, a
// range of buckets at a time, and joined; then whoever reduces it (coordinator/drive) asks for
// rounds of proofs and finishes it. A task is open until its result is there; a *lease* lends it to
// a node. Tasks are deterministic and idempotent, so it never matters whose result is taken, only
// that there is one.
//
// Decides only: no threads, no clock, no network. What must survive goes through the journal before
// it takes effect; when the journal fails, the call fails and nothing has changed. Leases live in
// memory: after a restart, nodes that still work on an open task get their lease back with their
// next heartbeat (its id tells the task), and nobody notices.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coordinator/board/figures.h"
#include "coordinator/board/journal.h"
#include "coordinator/board/records.h"
#include "core/base/status.h"
#include "proto/convert/jobs.h"
#include "proto/convert/work.h"

namespace tenon::board {

using convert::Job;
using convert::TaskKind;

// Leases are measured by a clock that never jumps, records by the one people read.
struct Now {
  using Monotonic = std::chrono::steady_clock::time_point;
  Monotonic monotonic{};
  UnixTime wall{};
};

struct Options {
  Milliseconds lease_ttl{15'000};
  std::uint32_t waiting_jobs_max = 1000;
  std::uint32_t proofs_per_task = 4;
  std::uint32_t failures_max = 3;      // Then a task is set aside.
  std::uint32_t set_aside_max = 8;     // Then a job fails at once.
  Milliseconds straggler_min{5'000};   // No second lease before; and not before ..
  std::uint32_t straggler_factor = 3;  // .. this many times the mean of its kind.
  std::uint64_t worker_memory_bytes = std::uint64_t{4} << 30;
  std::uint64_t semantics_version = 1;
  std::uint32_t budget_scale = 1;
  std::vector<std::string> stores;  // Empty: those that register.
  std::uint32_t min_stores = 1;
  // Ended jobs are forgotten, the oldest first, above this number or after this time. Their packs
  // stay. The newest job is always kept.
  std::size_t ended_jobs_max = 10'000;
  std::chrono::hours ended_jobs_kept_for{30 * 24};
  std::function<std::uint64_t()> random;  // For the names of tables.
};

// What reducing a job needs.
struct Collected {
  std::uint64_t job = 0;
  std::string id;
  JobSpec spec;
  UnixTime submitted_at;
  convert::CollectResult result;  // Of the join.
  convert::StoreMap stores;
  std::string artifact;
};

struct Table {
  std::uint64_t job = 0;
  std::uint64_t table = 0;
  std::vector<std::string> endpoints;
};

struct Node {
  std::string id, role, address, version;
  bool draining = false;
  Now::Monotonic seen{};
  std::uint32_t leases = 0;
  bool silent = false;  // Not heard for as long as a lease lasts.
};

// Something worth a line in a log.
struct Event {
  const char* name = "";
  std::string about;  // The id of a job or a task.
  std::string detail;
};

// Into how many shards a job is cut: as it says, or a guess by its number of operators or, where it
// is large, of graphs (0: not known).
std::uint32_t ShardsFor(const JobSpec& spec, double graphs = 0);

// Thread-compatible.
class Board {
 public:
  // Reads what there is and begins a new epoch. DataLoss: damaged records. The journal outlives it.
  static StatusOr<std::unique_ptr<Board>> Open(Journal& journal, Options options, Now now);

  // ------------------------------------------------------------------------------- jobs
  // Repeating a request id gives the job of the first time. AlreadyExists: `published`, or another
  // job makes that version. ResourceExhausted: too many wait, or above the limits.
  // A dry run makes no job: what comes back has no id.
  StatusOr<Job> Submit(const convert::SubmitJob& request, bool published, Now now);
  // The job that was made under a request id, if there is one.
  std::optional<Job> Repeated(const std::string& request_id) const;
  StatusOr<Job> Get(std::string_view id) const;  // NotFound.
  struct Page {
    std::vector<Job> jobs;
    std::string next_page_token;
  };
  StatusOr<Page> List(const convert::ListJobs& request) const;
  // NotFound; FailedPrecondition: it has ended.
  StatusOr<Job> Control(const convert::ControlJob& request, Now now);

  // ------------------------------------------------------------------------------- work
  // Open tasks for a node, perhaps none. Repeating a request id gives the same leases.
  std::vector<convert::Lease> Lease(const convert::LeaseRequest& request, Now now);
  convert::HeartbeatResponse Heartbeat(const convert::Heartbeat& heartbeat, Now now);
  // Whether the result was needed. InvalidArgument: it does not fit. NotFound: no such job any
  // more.
  StatusOr<bool> Complete(const convert::Complete& complete, Now now);
  Status Release(const convert::Release& release, Now now);
  // Takes leases from nodes that went silent, starts what waits for stores, forgets ended jobs and
  // nodes that are gone. To be called often.
  Status Tick(Now now);

  // ------------------------------------------------------------------------------- reducing
  // The most urgent job whose classes are collected and that nobody reduces yet; it is the
  // caller's until it has ended or is given back.
  std::optional<Collected> Claim();
  void GiveBack(std::uint64_t job);
  void Reduced(std::uint64_t job);         // It has ended, and the caller is done with it.
  bool IsWanted(std::uint64_t job) const;  // It has not ended.
  // Asks for verdicts on rules, given by their canonical bytes; known ones are looked up.
  Status BeginRound(std::uint64_t job, std::vector<std::string> rules);
  // Once all are there, in order. Nothing: not yet.
  std::optional<std::vector<convert::VerdictKind>> RoundResult(std::uint64_t job) const;
  // Of a rule that a round has proved; empty when the verifier gave none.
  StatusOr<std::string> Certificate(std::uint64_t job, const std::string& rule) const;
  void BeginPublishing(std::uint64_t job);
  struct Outcome {
    convert::GenerationCounts counts;
    std::string pack_reference, pack_address;
  };
  Status Finish(std::uint64_t job, const Outcome& outcome, Now now);
  Status Fail(std::uint64_t job, const std::string& error, Now now);

  // ------------------------------------------------------------------------------- the rest
  // Tables of ended jobs that are still in the stores, and the news that one is gone.
  std::vector<Table> TablesToDrop() const;
  Status Dropped(std::uint64_t job);
  // Those that were heard within the last hour, and all stores.
  std::vector<Node> Nodes(Now now) const;
  Figures figures() const;
  // What happened since it was asked before, in order; of very much, the first part.
  std::vector<Event> TakeEvents();
  std::uint64_t epoch() const { return epoch_; }
  // Grows with everything that could matter to somebody who waits.
  std::uint64_t revision() const { return revision_; }

 private:
  // The name of a task within its job; `round` is that of proofs, else 0.
  struct TaskKey {
    TaskKind kind = TaskKind::kShard;
    std::uint32_t round = 0;
    std::uint32_t index = 0;
    friend auto operator<=>(const TaskKey&, const TaskKey&) = default;
  };
  struct Attempt {
    std::string lease_id;
    std::string node;
    Now::Monotonic started, expires;
    std::uint32_t number = 1;
  };
  struct OpenTask {
    std::vector<Attempt> attempts;
    std::uint32_t made = 0;
    std::vector<std::string> failed_nodes;
    std::string last_error;
    std::vector<std::string> rules;  // Of proofs.
  };
  struct Mean {
    std::uint64_t count = 0;
    Milliseconds sum{0};
  };
  struct JobEntry {
    std::uint64_t number = 0;
    SubmitRecord submit;
    std::optional<StartRecord> start;
    StatusRecord status;
    std::map<std::uint32_t, CollectRecord> parts;  // Those that are collected.
    std::optional<CollectRecord> collect;          // What they were joined to.
    std::vector<bool> shard_done;
    std::uint32_t shards_done = 0;
    std::uint64_t graphs = 0;  // Of the shards that are done.
    std::map<std::uint32_t, convert::SetAside> set_aside;
    std::map<TaskKey, OpenTask> open;
    std::set<TaskKey> idle, leased;  // The open ones, by whether anybody works on them.
    std::map<TaskKind, Mean> durations;
    Milliseconds cpu{0};
    std::uint64_t revision = 0;
    // Reducing.
    bool claimed = false, publishing = false;
    std::uint32_t round = 0, next_proof = 0;
    std::vector<std::string> round_rules;
    std::map<std::string, convert::VerdictKind> verdicts;  // Of this round's distinct rules.
    std::size_t round_distinct = 0;
    ByVerdict verdict_counts{};  // Of all rounds.
  };
  struct Place {
    JobEntry* job = nullptr;
    TaskKey key;
  };

  Board(Journal& journal, Options options);
  void Note(const char* event, std::string about, std::string detail = "");
  Status Load(Now now);
  Status LoadRecord(std::string_view key, std::string_view value);

  static std::string IdOf(std::uint64_t job);
  static std::string IdOf(const JobEntry& job, const TaskKey& key);
  JobEntry* Find(std::string_view id);
  const JobEntry* Find(std::string_view id) const;
  std::optional<Place> Locate(std::string_view task_id);
  static bool HasEnded(const JobEntry& job) { return job.status.end != JobState::kSubmitted; }
  JobState StateOf(const JobEntry& job) const;
  Job View(const JobEntry& job) const;
  void Changed(JobEntry& job);
  void Activate(JobEntry& job);

  Status StartWaiting(Now now);
  Status Start(JobEntry& job, std::vector<std::string> stores, Now now);
  void OpenShards(JobEntry& job);
  // Opens what is left to do between the last shard and the classes.
  void OpenCollecting(JobEntry& job);
  // What follows when a shard is done or set aside.
  Status AfterShard(JobEntry& job, Now now);
  Status End(JobEntry& job, StatusRecord status, Now now);
  Status WriteStatus(JobEntry& job, const StatusRecord& status);
  bool MayForget(const JobEntry& job) const;
  Status ForgetJobs(Now now);
  void ForgetNodes(Now now);

  // Whether the addresses of these stores are known; after a restart they are not, until the stores
  // have been heard.
  bool AreKnown(const std::vector<std::string>& stores) const;
  convert::StoreMap StoresOf(const JobEntry& job) const;
  convert::Task TaskOf(const JobEntry& job, const TaskKey& key) const;
  convert::Lease Grant(JobEntry& job, const TaskKey& key, const std::string& node, Now now);
  bool IsStraggler(const JobEntry& job, const TaskKey& key, const std::string& node, Now now) const;
  bool Extend(const Place& place, const std::string& lease_id, const std::string& node, Now now);
  void AddOpen(JobEntry& job, const TaskKey& key, OpenTask task);
  void CloseTask(JobEntry& job, const TaskKey& key, Now now);
  // An attempt ended without a result; `error` counts, an empty one does not.
  Status LoseAttempt(JobEntry& job, const TaskKey& key, const std::string& lease_id,
                     const std::string& error, Now now);
  Status SetAside(JobEntry& job, const TaskKey& key, Now now);
  Status SetAsideProofs(JobEntry& job, const TaskKey& key, Now now);
  Status CompleteShard(JobEntry& job, const TaskKey& key, const convert::ShardResult& result,
                       Milliseconds cpu, Now now);
  // Of a part, or of the join.
  Status CompleteCollect(JobEntry& job, const TaskKey& key, const convert::CollectResult& result,
                         Milliseconds cpu, Now now);
  Status CompleteProofs(JobEntry& job, const TaskKey& key, const convert::ProofResult& result,
                        Milliseconds cpu, Now now);
  Status RecordVerdicts(JobEntry& job, std::span<const std::string> rules,
                        std::span<const convert::ProofVerdict> verdicts);
  StatusOr<std::optional<convert::ProofVerdict>> KnownToEveryone(const std::string& rule) const;
  StatusOr<std::optional<convert::ProofVerdict>> Known(std::uint64_t job,
                                                       const std::string& rule) const;

  Journal& journal_;
  Options options_;
  std::uint64_t epoch_ = 0;
  std::uint64_t next_lease_ = 1;
  std::uint64_t revision_ = 0;
  std::uint64_t next_job_ = 1;
  std::map<std::uint64_t, JobEntry> jobs_;
  // Jobs that have not ended, the most urgent first: (-priority, number).
  std::set<std::pair<int, std::uint64_t>> active_;
  std::set<std::pair<UnixTime, std::uint64_t>> ended_;  // The others, the oldest first.
  std::unordered_map<std::string, std::uint64_t> job_by_request_;
  std::map<std::uint64_t, Table> tables_;
  std::map<std::string, Node> nodes_;

  // Leases given under recent request ids.
  struct Recent {
    Now::Monotonic at;
    std::string request_id;
  };
  std::unordered_map<std::string, std::vector<std::string>> leases_by_request_;
  std::deque<Recent> recent_;
  Totals totals_;
  std::vector<Event> events_;
};

}  // namespace tenon::board
