// Jobs: from submission to their end, and back from the journal.
//
// Invariant: whatever `jobs_` says of shards, classes, pauses and ends is in the journal. A call
// writes first and changes memory only when the write succeeded.
#include "coordinator/board/board.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "core/base/check.h"

namespace tenon::board {
namespace {

// Of shards that nobody asked for: some tenths of a second of work, and no more of them than a
// coordinator hands out without being what all wait for.
constexpr double kGraphsPerShard = 131'072;
constexpr std::uint32_t kGuessedShardsMax = 16'384;

std::optional<std::uint64_t> NumberOf(std::string_view digits) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return out;
}

std::optional<std::uint64_t> JobNumber(std::string_view id) {
  if (!id.starts_with("j")) return std::nullopt;
  return NumberOf(id.substr(1));
}

Status NoSuchJob(std::string_view id) {
  return convert::WithDetails(
      base::NotFound(fmt::format("there is no job '{}'; list the jobs", id.substr(0, 64))),
      {.reason = "JOB_NOT_FOUND", .metadata = {{"job", std::string(id.substr(0, 64))}}});
}

std::string ReferenceOf(const JobSpec& spec) {
  return fmt::format("{}@{}", spec.pack_name, spec.pack_version);
}

std::uint32_t BucketBitsFor(const JobSpec& spec, std::size_t stores) {
  const int spread = static_cast<int>(std::bit_width(stores - 1));
  return static_cast<std::uint32_t>(spec.max_operators <= 3 ? spread : std::max(spread, 6));
}

}  // namespace

// Small ones in few parts (each node prepares the levels below once), large ones in so many that a
// lost part costs little.
std::uint32_t ShardsFor(const JobSpec& spec, double graphs) {
  if (spec.shards != 0) return spec.shards;
  const std::uint32_t least = spec.max_operators <= 2 ? 4 : spec.max_operators == 3 ? 16 : 128;
  const double wanted = std::ceil(graphs / kGraphsPerShard);
  return wanted <= least ? least
                         : static_cast<std::uint32_t>(std::min<double>(wanted, kGuessedShardsMax));
}

Board::Board(Journal& journal, Options options) : journal_(journal), options_(std::move(options)) {
  CHECK(options_.random != nullptr);
}

StatusOr<std::unique_ptr<Board>> Board::Open(Journal& journal, Options options, Now now) {
  std::unique_ptr<Board> board(new Board(journal, std::move(options)));
  if (const Status s = board->Load(now); !s.ok()) return base::Annotate(s, "reading the jobs");
  return board;
}

Status Board::Load(Now now) {
  ASSIGN_OR_RETURN(const auto epoch, journal_.Get(store::Family::kJobs, kEpochKey));
  if (epoch && epoch->size() != 8) return base::DataLoss("the epoch is no number");
  epoch_ = (epoch ? store::ReadU64(*epoch) : 0) + 1;
  store::Batch batch;
  std::string bytes;
  store::AppendU64(bytes, epoch_);
  batch.Put(store::Family::kJobs, kEpochKey, bytes);
  RETURN_IF_ERROR(journal_.Write(batch));
  revision_ = epoch_ << 32;

  // Submissions first: the other records belong to them.
  const std::string submit(1, static_cast<char>(JobKey::kSubmit));
  RETURN_IF_ERROR(
      journal_.Scan(store::Family::kJobs, submit,
                    [&](std::string_view k, std::string_view v) { return LoadRecord(k, v); }));
  RETURN_IF_ERROR(
      journal_.Scan(store::Family::kJobs, "", [&](std::string_view k, std::string_view v) {
        return k == kEpochKey || k[0] == submit[0] ? OkStatus() : LoadRecord(k, v);
      }));
  for (auto& [number, job] : jobs_) {
    Changed(job);
    if (HasEnded(job)) {
      ended_.emplace(job.status.ended_at, number);
      continue;
    }
    Activate(job);
    if (!job.start) continue;
    OpenShards(job);
    RETURN_IF_ERROR(AfterShard(job, now));
  }
  return StartWaiting(now);
}

Status Board::LoadRecord(std::string_view key, std::string_view value) {
  if (key.size() != 9 && key.size() != 13) return base::DataLoss("a key of unknown form");
  const std::uint64_t number = store::ReadU64(key.substr(1));
  const auto kind = static_cast<JobKey>(key[0]);
  if (kind == JobKey::kSubmit) {
    JobEntry& job = jobs_[number];
    job.number = number;
    ASSIGN_OR_RETURN(job.submit, DecodeSubmit(value));
    job.status.priority = job.submit.spec.priority;
    job_by_request_[job.submit.request_id] = number;
    next_job_ = std::max(next_job_, number + 1);
    return OkStatus();
  }
  const auto it = jobs_.find(number);
  if (it == jobs_.end()) return base::DataLoss(fmt::format("a record of no job ({})", number));
  JobEntry& job = it->second;
  switch (kind) {
    case JobKey::kSubmit:
    case JobKey::kTable: {
      ASSIGN_OR_RETURN(const StartRecord start, DecodeStart(value));
      tables_[number] = {number, start.table, start.stores};
      return OkStatus();
    }
    case JobKey::kStart: {  // Sorts before the shards.
      ASSIGN_OR_RETURN(job.start, DecodeStart(value));
      job.shard_done.resize(job.start->shards);
      return OkStatus();
    }
    case JobKey::kStatus: {
      ASSIGN_OR_RETURN(job.status, DecodeStatus(value));
      return OkStatus();
    }
    case JobKey::kShard: {
      ASSIGN_OR_RETURN(const ShardRecord shard, DecodeShard(value));
      const std::uint32_t index = key.size() == 13 ? store::ReadU32(key.substr(9)) : UINT32_MAX;
      if (index >= job.shard_done.size()) return base::DataLoss("a shard that cannot be");
      job.shard_done[index] = true;
      ++job.shards_done;
      job.graphs += shard.result.graphs;
      job.cpu += shard.cpu;
      return OkStatus();
    }
    case JobKey::kCollect: {
      ASSIGN_OR_RETURN(CollectRecord record, DecodeCollect(value));
      job.cpu += record.cpu;
      if (key.size() == 13) {
        job.parts[store::ReadU32(key.substr(9))] = std::move(record);
      } else {
        job.collect = std::move(record);
      }
      return OkStatus();
    }
    case JobKey::kSetAside: {
      ASSIGN_OR_RETURN(convert::SetAside aside, DecodeSetAside(value));
      job.set_aside[aside.shard] = std::move(aside);
      return OkStatus();
    }
  }
  return base::DataLoss("a record of unknown kind");
}

// ------------------------------------------------------------------------------------ names

std::string Board::IdOf(std::uint64_t job) { return fmt::format("j{}", job); }

Board::JobEntry* Board::Find(std::string_view id) {
  const auto number = JobNumber(id);
  const auto it = number ? jobs_.find(*number) : jobs_.end();
  return it == jobs_.end() ? nullptr : &it->second;
}
const Board::JobEntry* Board::Find(std::string_view id) const {
  return const_cast<Board*>(this)->Find(id);
}

void Board::Changed(JobEntry& job) { job.revision = ++revision_; }

void Board::Activate(JobEntry& job) { active_.insert({-job.status.priority, job.number}); }

JobState Board::StateOf(const JobEntry& job) const {
  if (HasEnded(job)) return job.status.end;
  if (!job.start) return JobState::kSubmitted;
  if (job.publishing) return JobState::kPublishing;
  if (job.collect) return JobState::kReducing;
  return job.shards_done == job.start->shards ? JobState::kMatching : JobState::kEnumerating;
}

Job Board::View(const JobEntry& job) const {
  Job out;
  out.id = IdOf(job.number);
  out.spec = job.submit.spec;
  out.spec.priority = job.status.priority;
  out.state = StateOf(job);
  out.paused = job.status.paused;
  out.submitted_at = job.submit.submitted_at;
  if (job.start) {
    out.started_at = job.start->started_at;
    out.shards_total = job.start->shards;
  }
  out.ended_at = job.status.ended_at;
  out.revision = job.revision;
  out.shards_done = job.shards_done;
  for (const TaskKey& key : job.leased) out.shards_leased += key.kind == TaskKind::kShard ? 1 : 0;
  for (const auto& [shard, aside] : job.set_aside) out.set_aside.push_back(aside);
  out.error = job.status.error;
  out.pack_reference = job.status.pack_reference;
  out.pack_address = job.status.pack_address;
  if (HasEnded(job)) {
    out.shards_done = job.status.shards_done;
    out.counts = job.status.counts;
    out.round = job.status.round;
    out.cpu = job.status.cpu;
    return out;
  }
  const ByVerdict& verdicts = job.verdict_counts;
  const auto of = [&](convert::VerdictKind k) { return verdicts[static_cast<std::size_t>(k)]; };
  out.counts.candidates = std::accumulate(verdicts.begin(), verdicts.end(), std::uint64_t{0});
  out.counts.proved = of(convert::VerdictKind::kProved);
  out.counts.refuted = of(convert::VerdictKind::kRefuted);
  out.counts.unproved = out.counts.candidates - out.counts.proved - out.counts.refuted;
  if (job.collect) {
    const convert::CollectResult& found = job.collect->result;
    out.counts.graphs_by_size = found.graphs_by_size;
    out.counts.graphs = found.graphs;
    out.counts.classes = found.classes;
    out.counts.equivalent_pairs = found.equivalent_pairs;
  }
  out.round = job.round;
  out.proofs_total = job.round_distinct;
  out.proofs_done = job.verdicts.size();
  out.cpu = job.cpu;
  return out;
}

// ------------------------------------------------------------------------------------ people

std::optional<Job> Board::Repeated(const std::string& request_id) const {
  const auto it = job_by_request_.find(request_id);
  if (it == job_by_request_.end()) return std::nullopt;
  return View(jobs_.at(it->second));
}

StatusOr<Job> Board::Submit(const convert::SubmitJob& request, bool published, Now now) {
  if (auto job = Repeated(request.request_id); job && !request.dry_run) return *std::move(job);
  const std::string reference = ReferenceOf(request.spec);
  const auto exists = [&](const std::string& why) {
    return convert::WithDetails(absl::AlreadyExistsError(why),
                                {.reason = "PACK_EXISTS", .metadata = {{"pack", reference}}});
  };
  if (published) {
    return exists(fmt::format("{} is published already; give another version", reference));
  }
  for (const auto& [priority, number] : active_) {
    if (ReferenceOf(jobs_.at(number).submit.spec) == reference) {
      return exists(fmt::format("job {} makes {} already", IdOf(number), reference));
    }
  }
  if (active_.size() >= options_.waiting_jobs_max) {
    return convert::WithDetails(
        base::ResourceExhausted(fmt::format("{} jobs wait; try again later", active_.size())),
        {.reason = "TOO_MANY_JOBS", .retry_after = std::chrono::seconds(30)});
  }
  if (request.spec.memory_limit_bytes > options_.worker_memory_bytes) {
    return convert::WithDetails(
        base::ResourceExhausted(fmt::format("a memory limit of {} bytes; workers have {}",
                                            request.spec.memory_limit_bytes,
                                            options_.worker_memory_bytes)),
        {.reason = "ABOVE_LIMIT",
         .metadata = {{"field", "spec.memory_limit_bytes"},
                      {"limit", std::to_string(options_.worker_memory_bytes)}}});
  }
  if (request.dry_run) {
    Job would;
    would.spec = request.spec;
    would.shards_total = ShardsFor(request.spec);
    return would;
  }
  JobEntry job;
  job.number = next_job_;
  job.submit = {request.request_id, request.spec, now.wall};
  job.status.priority = request.spec.priority;
  store::Batch batch;
  batch.Put(store::Family::kJobs, KeyOf(JobKey::kSubmit, job.number), Encode(job.submit));
  RETURN_IF_ERROR(journal_.Write(batch));
  ++next_job_;
  job_by_request_[request.request_id] = job.number;
  JobEntry& entry = jobs_[job.number] = std::move(job);
  Activate(entry);
  Changed(entry);
  Note("job_submitted", IdOf(entry.number), reference);
  // The job is there; when it cannot start now, Tick tries again.
  (void)StartWaiting(now);
  return View(entry);
}

StatusOr<Job> Board::Get(std::string_view id) const {
  const JobEntry* job = Find(id);
  if (job == nullptr) return NoSuchJob(id);
  return View(*job);
}

StatusOr<Board::Page> Board::List(const convert::ListJobs& request) const {
  auto it = jobs_.rbegin();
  if (!request.page_token.empty()) {
    const auto before = JobNumber(request.page_token);
    if (!before) {
      return convert::Violations({{"page_token", "not from an earlier answer"}});
    }
    it = std::make_reverse_iterator(jobs_.lower_bound(*before));
  }
  Page page;
  for (; it != jobs_.rend(); ++it) {
    const JobState state = StateOf(it->second);
    if (!request.states.empty() &&
        std::find(request.states.begin(), request.states.end(), state) == request.states.end()) {
      continue;
    }
    if (page.jobs.size() == request.page_size) {
      page.next_page_token = page.jobs.back().id;
      break;
    }
    page.jobs.push_back(View(it->second));
  }
  return page;
}

StatusOr<Job> Board::Control(const convert::ControlJob& request, Now now) {
  using Action = convert::ControlJob::Action;
  JobEntry* job = Find(request.id);
  if (job == nullptr) return NoSuchJob(request.id);
  if (HasEnded(*job)) {
    if (request.action == Action::kCancel && job->status.end == JobState::kCancelled) {
      return View(*job);
    }
    return convert::WithDetails(
        base::FailedPrecondition(
            fmt::format("job {} has ended ({})", request.id, convert::NameOf(job->status.end))),
        {.reason = "JOB_ENDED", .metadata = {{"job", request.id}}});
  }
  StatusRecord status = job->status;
  switch (request.action) {
    case Action::kCancel:
      status.end = JobState::kCancelled;
      RETURN_IF_ERROR(End(*job, std::move(status), now));
      return View(*job);
    case Action::kPause:
      status.paused = true;
      break;
    case Action::kResume:
      status.paused = false;
      break;
    case Action::kSetPriority:
      status.priority = request.priority;
      break;
  }
  RETURN_IF_ERROR(WriteStatus(*job, status));
  return View(*job);
}

Status Board::WriteStatus(JobEntry& job, const StatusRecord& status) {
  if (job.status == status) return OkStatus();
  store::Batch batch;
  batch.Put(store::Family::kJobs, KeyOf(JobKey::kStatus, job.number), Encode(status));
  RETURN_IF_ERROR(journal_.Write(batch));
  active_.erase({-job.status.priority, job.number});
  job.status = status;
  Activate(job);
  Changed(job);
  return OkStatus();
}

// ------------------------------------------------------------------------------ start and end

Status Board::StartWaiting(Now now) {
  std::vector<std::string> stores = options_.stores;
  if (stores.empty()) {
    for (const auto& [id, node] : nodes_) {
      if (node.role == "store" && !node.draining) stores.push_back(id);
    }
    if (stores.size() < options_.min_stores) return OkStatus();
  }
  if (stores.empty()) return OkStatus();
  for (const auto& [priority, number] : active_) {
    JobEntry& job = jobs_.at(number);
    if (!job.start && !job.status.paused) RETURN_IF_ERROR(Start(job, stores, now));
  }
  return OkStatus();
}

Status Board::Start(JobEntry& job, std::vector<std::string> stores, Now now) {
  StartRecord start;
  start.started_at = now.wall;
  start.shards = ShardsFor(job.submit.spec);
  start.bucket_bits = BucketBitsFor(job.submit.spec, stores.size());
  start.table = options_.random() >> 1;
  start.stores = std::move(stores);
  store::Batch batch;
  batch.Put(store::Family::kJobs, KeyOf(JobKey::kStart, job.number), Encode(start));
  RETURN_IF_ERROR(journal_.Write(batch));
  job.shard_done.assign(start.shards, false);
  job.start = std::move(start);
  OpenShards(job);
  Note("job_started", IdOf(job.number), fmt::format("{} shards", job.start->shards));
  Changed(job);
  return OkStatus();
}

void Board::OpenShards(JobEntry& job) {
  if (job.collect) return;
  for (std::uint32_t k = 0; k < job.start->shards; ++k) {
    if (!job.shard_done[k] && !job.set_aside.contains(k)) {
      AddOpen(job, {TaskKind::kShard, 0, k}, {});
    }
  }
}

Status Board::AfterShard(JobEntry& job, Now now) {
  const std::uint32_t total = job.start->shards;
  const bool hopeless = job.set_aside.size() > options_.set_aside_max;
  if (!hopeless && job.shards_done + job.set_aside.size() < total) return OkStatus();
  if (!job.set_aside.empty()) {
    const convert::SetAside& first = job.set_aside.begin()->second;
    return Fail(job.number,
                fmt::format("incomplete: {} of {} shards were set aside after {} attempts each; "
                            "shard {}: {}",
                            job.set_aside.size(), total, options_.failures_max, first.shard,
                            first.last_error),
                now);
  }
  if (!job.collect) OpenCollecting(job);
  return OkStatus();
}

void Board::OpenCollecting(JobEntry& job) {
  const std::uint32_t parts = PartsOf(*job.start);
  if (job.parts.size() == parts) return AddOpen(job, {TaskKind::kJoin, 0, 0}, {});
  for (std::uint32_t k = 0; k < parts; ++k) {
    if (!job.parts.contains(k)) AddOpen(job, {TaskKind::kCollect, 0, k}, {});
  }
}

Status Board::End(JobEntry& job, StatusRecord status, Now now) {
  status.ended_at = now.wall;
  status.cpu = job.cpu;
  status.round = job.round;
  status.shards_done = job.shards_done;
  status.paused = false;
  if (status.end != JobState::kDone) status.counts = View(job).counts;
  store::Batch batch;
  batch.Put(store::Family::kJobs, KeyOf(JobKey::kStatus, job.number), Encode(status));
  // What only the work needed.
  const auto drop = [&](store::Family family, const std::string& prefix) {
    return journal_.Scan(family, prefix, [&](std::string_view key, std::string_view) {
      batch.Delete(family, key);
      return OkStatus();
    });
  };
  RETURN_IF_ERROR(drop(store::Family::kJobs, KeyOf(JobKey::kShard, job.number)));
  RETURN_IF_ERROR(drop(store::Family::kVerdicts, JobVerdictKey(job.number, "")));
  RETURN_IF_ERROR(drop(store::Family::kJobs, KeyOf(JobKey::kCollect, job.number)));
  if (job.start) {
    batch.Put(store::Family::kJobs, KeyOf(JobKey::kTable, job.number), Encode(*job.start));
  }
  RETURN_IF_ERROR(journal_.Write(batch));
  if (job.start) tables_[job.number] = {job.number, job.start->table, job.start->stores};
  active_.erase({-job.status.priority, job.number});
  ++totals_.jobs_ended[static_cast<std::size_t>(status.end)];
  totals_.rules += status.end == JobState::kDone ? status.counts.rules : 0;
  job.status = std::move(status);
  const std::string& told = job.status.error.empty() ? job.status.pack_reference : job.status.error;
  Note(job.status.end == JobState::kDone     ? "job_done"
       : job.status.end == JobState::kFailed ? "job_failed"
                                             : "job_cancelled",
       IdOf(job.number), told);
  ended_.emplace(job.status.ended_at, job.number);
  job.open.clear();
  job.idle.clear();
  job.leased.clear();
  job.parts.clear();
  job.verdicts.clear();
  job.round_rules.clear();
  Changed(job);
  return OkStatus();
}

Status Board::Finish(std::uint64_t number, const Outcome& outcome, Now now) {
  JobEntry& job = jobs_.at(number);
  if (HasEnded(job)) return OkStatus();
  StatusRecord status = job.status;
  status.end = JobState::kDone;
  status.counts = outcome.counts;
  status.pack_reference = outcome.pack_reference;
  status.pack_address = outcome.pack_address;
  return End(job, std::move(status), now);
}

Status Board::Fail(std::uint64_t number, const std::string& error, Now now) {
  JobEntry& job = jobs_.at(number);
  if (HasEnded(job)) return OkStatus();
  StatusRecord status = job.status;
  status.end = JobState::kFailed;
  status.error = error;
  return End(job, std::move(status), now);
}

// ------------------------------------------------------------------------------------ the rest

std::vector<Table> Board::TablesToDrop() const {
  std::vector<Table> out;
  for (const auto& [job, table] : tables_) {
    if (!AreKnown(table.endpoints)) continue;
    out.push_back(table);
    out.back().endpoints = StoresOf(jobs_.at(job)).endpoints;
  }
  return out;
}

Status Board::Dropped(std::uint64_t job) {
  store::Batch batch;
  batch.Delete(store::Family::kJobs, KeyOf(JobKey::kTable, job));
  RETURN_IF_ERROR(journal_.Write(batch));
  tables_.erase(job);
  return OkStatus();
}

}  // namespace tenon::board
