// Results, and rounds of proofs.
//
// Reducing is deterministic, so its state needs no snapshot: after a restart it runs again, asks
// for the same rounds and finds their verdicts in the journal. For that every verdict a job has
// used is kept under the job until its end; repeatable ones also for everybody (the verdict cache),
// where the first one stays.
#include <algorithm>

#include <fmt/core.h>

#include "coordinator/board/board.h"
#include "core/base/check.h"

namespace tenon::board {

StatusOr<bool> Board::Complete(const convert::Complete& complete, Now now) {
  const auto place = Locate(complete.task_id);
  if (!place) {
    return convert::WithDetails(
        base::NotFound(fmt::format("there is no task '{}'; drop it", complete.task_id)),
        {.reason = "TASK_NOT_FOUND", .metadata = {{"task", complete.task_id}}});
  }
  JobEntry& job = *place->job;
  const TaskKey key = place->key;
  if (HasEnded(job)) {
    if (job.status.end == JobState::kDone) return false;
    return convert::WithDetails(
        base::NotFound(fmt::format("job {} is {}; drop the task", IdOf(job.number),
                                   convert::NameOf(job.status.end))),
        {.reason = "JOB_ENDED", .metadata = {{"job", IdOf(job.number)}}});
  }
  if (complete.result.index() + 1 != static_cast<std::size_t>(key.kind)) {
    return convert::Violations({{"result", "of another kind than the task"}});
  }
  // A shard that was set aside and is done after all: good.
  const bool late = key.kind == TaskKind::kShard && job.set_aside.contains(key.index);
  if (!job.open.contains(key) && !late) return false;
  switch (key.kind) {
    case TaskKind::kShard:
      RETURN_IF_ERROR(CompleteShard(job, key, std::get<convert::ShardResult>(complete.result),
                                    complete.cpu, now));
      break;
    case TaskKind::kCollect:
      RETURN_IF_ERROR(CompleteCollect(job, key, std::get<convert::CollectResult>(complete.result),
                                      complete.cpu, now));
      break;
    case TaskKind::kProofs:
      RETURN_IF_ERROR(CompleteProofs(job, key, std::get<convert::ProofResult>(complete.result),
                                     complete.cpu, now));
      break;
    case TaskKind::kJoin:
      RETURN_IF_ERROR(CompleteCollect(job, key, std::get<convert::JoinResult>(complete.result).all,
                                      complete.cpu, now));
      break;
  }
  return true;
}

Status Board::CompleteShard(JobEntry& job, const TaskKey& key, const convert::ShardResult& result,
                            Milliseconds cpu, Now now) {
  store::Batch batch;
  batch.Put(store::Family::kJobs, KeyOf(JobKey::kShard, job.number, key.index),
            Encode(ShardRecord{result, cpu}));
  batch.Delete(store::Family::kJobs, KeyOf(JobKey::kSetAside, job.number, key.index));
  RETURN_IF_ERROR(journal_.Write(batch));
  totals_.graphs += result.graphs;
  totals_.records += result.records;
  totals_.record_bytes += result.bytes;
  ++totals_.shards;
  totals_.cpu += cpu;
  job.set_aside.erase(key.index);
  job.shard_done[key.index] = true;
  ++job.shards_done;
  job.graphs += result.graphs;
  job.cpu += cpu;
  CloseTask(job, key, now);
  Changed(job);
  // The result is kept, whatever becomes of the job; Tick looks again.
  return AfterShard(job, now);
}

Status Board::CompleteCollect(JobEntry& job, const TaskKey& key,
                              const convert::CollectResult& result, Milliseconds cpu, Now now) {
  const std::size_t sizes = static_cast<std::size_t>(job.submit.spec.max_operators);
  if (result.graphs_by_size.size() != sizes) {
    return convert::Violations(
        {{key.kind == TaskKind::kJoin ? "join.counts.graphs_by_size"
                                      : "collect.counts.graphs_by_size",
          fmt::format("{} sizes; the job has {}", result.graphs_by_size.size(), sizes)}});
  }
  // Each graph is of one shard. A store that was given another disk, or an old copy of its own, has
  // nothing to report, so that only the sum tells.
  if (key.kind == TaskKind::kJoin && result.graphs < job.graphs) {
    return Fail(job.number,
                fmt::format("the stores have the records of {} graphs, and its shards wrote those "
                            "of {}: a store has lost some; submit it again",
                            result.graphs, job.graphs),
                now);
  }
  CollectRecord record{result, cpu};
  store::Batch batch;
  const bool join = key.kind == TaskKind::kJoin;
  batch.Put(
      store::Family::kJobs,
      join ? KeyOf(JobKey::kCollect, job.number) : KeyOf(JobKey::kCollect, job.number, key.index),
      Encode(record));
  RETURN_IF_ERROR(journal_.Write(batch));
  if (join) {
    job.collect = std::move(record);
  } else {
    job.parts[key.index] = std::move(record);
  }
  job.cpu += cpu;
  totals_.cpu += cpu;
  CloseTask(job, key, now);
  if (!join) OpenCollecting(job);
  Changed(job);
  return OkStatus();
}

Status Board::CompleteProofs(JobEntry& job, const TaskKey& key, const convert::ProofResult& result,
                             Milliseconds cpu, Now now) {
  const std::vector<std::string> rules = job.open.at(key).rules;
  if (result.verdicts.size() != rules.size()) {
    return convert::Violations(
        {{"proofs.verdicts",
          fmt::format("{} of them; the task has {} rules", result.verdicts.size(), rules.size())}});
  }
  RETURN_IF_ERROR(RecordVerdicts(job, rules, result.verdicts));
  job.cpu += cpu;
  totals_.cpu += cpu;
  CloseTask(job, key, now);
  Changed(job);
  return OkStatus();
}

namespace {

// Whether no other verifier of the same semantics can say something else: a certificate shows a
// proof, and a counterexample a refutation. What one verifier could not decide, the next may.
bool StaysTrue(const convert::ProofVerdict& verdict) {
  if (!verdict.repeatable) return false;
  if (verdict.kind == convert::VerdictKind::kProved) return !verdict.certificate.empty();
  return verdict.kind == convert::VerdictKind::kRefuted;
}

}  // namespace

Status Board::RecordVerdicts(JobEntry& job, std::span<const std::string> rules,
                             std::span<const convert::ProofVerdict> verdicts) {
  store::Batch batch;
  for (std::size_t k = 0; k < rules.size(); ++k) {
    const std::string bytes = Encode(verdicts[k]);
    batch.Put(store::Family::kVerdicts, JobVerdictKey(job.number, rules[k]), bytes);
    if (!StaysTrue(verdicts[k])) continue;
    ASSIGN_OR_RETURN(const auto before, KnownToEveryone(rules[k]));
    if (before) continue;
    const std::string shared =
        VerdictKey(options_.semantics_version, options_.budget_scale, rules[k]);
    batch.Put(store::Family::kVerdicts, shared, bytes);
  }
  RETURN_IF_ERROR(journal_.Write(batch));
  for (std::size_t k = 0; k < rules.size(); ++k) {
    const auto kind = static_cast<std::size_t>(verdicts[k].kind);
    if (job.verdicts.insert_or_assign(rules[k], verdicts[k].kind).second) {
      ++job.verdict_counts[kind];
    }
    ++totals_.verdicts[kind];
  }
  return OkStatus();
}

StatusOr<std::optional<convert::ProofVerdict>> Board::KnownToEveryone(
    const std::string& rule) const {
  const std::string key = VerdictKey(options_.semantics_version, options_.budget_scale, rule);
  ASSIGN_OR_RETURN(const auto bytes, journal_.Get(store::Family::kVerdicts, key));
  if (!bytes) return std::optional<convert::ProofVerdict>();
  ASSIGN_OR_RETURN(convert::ProofVerdict verdict, DecodeVerdict(*bytes));
  // Older coordinators kept more.
  if (!StaysTrue(verdict)) return std::optional<convert::ProofVerdict>();
  return std::optional(std::move(verdict));
}

StatusOr<std::optional<convert::ProofVerdict>> Board::Known(std::uint64_t job,
                                                            const std::string& rule) const {
  ASSIGN_OR_RETURN(const auto bytes,
                   journal_.Get(store::Family::kVerdicts, JobVerdictKey(job, rule)));
  if (!bytes) return KnownToEveryone(rule);
  ASSIGN_OR_RETURN(convert::ProofVerdict verdict, DecodeVerdict(*bytes));
  return std::optional(std::move(verdict));
}

StatusOr<std::string> Board::Certificate(std::uint64_t job, const std::string& rule) const {
  ASSIGN_OR_RETURN(auto verdict, Known(job, rule));
  if (!verdict || verdict->kind != convert::VerdictKind::kProved) return std::string();
  return std::move(verdict->certificate);
}

// Rules that are proved together and kill their verifiers are tried apart. One that does so alone
// has a verdict: unknown.
Status Board::SetAsideProofs(JobEntry& job, const TaskKey& key, Now now) {
  const OpenTask task = job.open.at(key);
  if (task.rules.size() > 1) {
    for (const std::string& rule : task.rules) {
      OpenTask one;
      one.rules = {rule};
      AddOpen(job, {TaskKind::kProofs, key.round, job.next_proof++}, std::move(one));
    }
  } else {
    convert::ProofVerdict verdict;
    verdict.kind = convert::VerdictKind::kUnknown;
    verdict.reason =
        fmt::format("given up after {} verifiers: {}", task.failed_nodes.size(), task.last_error);
    RETURN_IF_ERROR(RecordVerdicts(job, task.rules, std::span(&verdict, 1)));
  }
  CloseTask(job, key, now);
  Changed(job);
  return OkStatus();
}

// ------------------------------------------------------------------------------------ reducing

std::optional<Collected> Board::Claim() {
  for (const auto& [priority, number] : active_) {
    JobEntry& job = jobs_.at(number);
    if (!job.collect || job.claimed || job.status.paused) continue;
    if (!AreKnown(job.start->stores)) continue;
    job.claimed = true;
    job.round = 0;
    job.verdict_counts = {};
    Changed(job);
    const std::string id = IdOf(number);
    return Collected{number,
                     id,
                     job.submit.spec,
                     job.submit.submitted_at,
                     job.collect->result,
                     StoresOf(job),
                     id + ".classes"};
  }
  return std::nullopt;
}

void Board::GiveBack(std::uint64_t number) {
  JobEntry& job = jobs_.at(number);
  job.claimed = false;
  job.publishing = false;
  std::erase_if(job.open, [](const auto& task) { return task.first.kind == TaskKind::kProofs; });
  std::erase_if(job.idle, [](const TaskKey& key) { return key.kind == TaskKind::kProofs; });
  std::erase_if(job.leased, [](const TaskKey& key) { return key.kind == TaskKind::kProofs; });
  job.verdicts.clear();
  job.round_rules.clear();
  job.round_distinct = 0;
  Changed(job);
}

void Board::Reduced(std::uint64_t number) { jobs_.at(number).claimed = false; }

bool Board::IsWanted(std::uint64_t number) const { return !HasEnded(jobs_.at(number)); }

Status Board::BeginRound(std::uint64_t number, std::vector<std::string> rules) {
  JobEntry& job = jobs_.at(number);
  if (HasEnded(job)) return absl::CancelledError("the job has ended");
  std::map<std::string, convert::VerdictKind> known;
  std::vector<std::string> missing;
  std::set<std::string> distinct;
  ByVerdict counts = job.verdict_counts;
  for (const std::string& rule : rules) {
    if (!distinct.insert(rule).second) continue;
    ASSIGN_OR_RETURN(const auto verdict, Known(number, rule));
    if (verdict) {
      known[rule] = verdict->kind;
      ++counts[static_cast<std::size_t>(verdict->kind)];
    } else {
      missing.push_back(rule);
    }
  }
  totals_.verdicts_known += known.size();
  totals_.verdicts_asked += missing.size();
  job.verdict_counts = counts;
  ++job.round;
  job.next_proof = 0;
  job.round_rules = std::move(rules);
  job.round_distinct = distinct.size();
  job.verdicts = std::move(known);
  for (std::size_t k = 0; k < missing.size(); k += options_.proofs_per_task) {
    OpenTask task;
    const std::size_t end = std::min<std::size_t>(k + options_.proofs_per_task, missing.size());
    task.rules.assign(missing.begin() + std::ptrdiff_t(k), missing.begin() + std::ptrdiff_t(end));
    AddOpen(job, {TaskKind::kProofs, job.round, job.next_proof++}, std::move(task));
  }
  Changed(job);
  return OkStatus();
}

std::optional<std::vector<convert::VerdictKind>> Board::RoundResult(std::uint64_t number) const {
  const JobEntry& job = jobs_.at(number);
  if (job.verdicts.size() != job.round_distinct) return std::nullopt;
  std::vector<convert::VerdictKind> out;
  for (const std::string& rule : job.round_rules) out.push_back(job.verdicts.at(rule));
  return out;
}

void Board::BeginPublishing(std::uint64_t number) {
  JobEntry& job = jobs_.at(number);
  if (HasEnded(job)) return;
  job.publishing = true;
  Changed(job);
}

}  // namespace tenon::board
