// Leases: who works on which open task, for how long.
//
// A task is idle or leased. Idle tasks go out in the order of jobs (priority, then age) and, within
// a job, of their numbers. Only when nothing is idle, tasks that take much longer than others of
// their kind get a second lease. An attempt that ends without a result counts against its task
// unless the node left in peace; after three in a row the task is more likely poison than unlucky,
// and is set aside.
#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "coordinator/board/board.h"

namespace tenon::board {
namespace {

constexpr std::size_t kRecentMax = 100'000;
constexpr std::chrono::hours kRecentFor{1};
constexpr std::chrono::hours kForgetAfter{1};
constexpr std::size_t kAttemptsMax = 2;

std::optional<std::uint32_t> NumberOf(std::string_view digits) {
  std::uint32_t out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return out;
}

std::string ArtifactOf(std::string_view job) { return fmt::format("{}.classes", job); }
std::string PartOf(std::string_view job, std::uint32_t part) {
  return fmt::format("{}.part{}", job, part);
}

}  // namespace

// "j7/shard/3", "j7/collect/1", "j7/join", "j7/proofs/2/5"
std::string Board::IdOf(const JobEntry& job, const TaskKey& key) {
  switch (key.kind) {
    case TaskKind::kShard:
      return fmt::format("j{}/shard/{}", job.number, key.index);
    case TaskKind::kCollect:
      return fmt::format("j{}/collect/{}", job.number, key.index);
    case TaskKind::kJoin:
      return fmt::format("j{}/join", job.number);
    case TaskKind::kProofs:
      return fmt::format("j{}/proofs/{}/{}", job.number, key.round, key.index);
  }
  return "";
}

std::optional<Board::Place> Board::Locate(std::string_view id) {
  const std::size_t slash = id.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  JobEntry* job = Find(id.substr(0, slash));
  if (job == nullptr) return std::nullopt;
  const std::string_view rest = id.substr(slash + 1);
  if (rest == "join") return Place{job, {TaskKind::kJoin, 0, 0}};
  if (rest.starts_with("shard/")) {
    const auto shard = NumberOf(rest.substr(6));
    if (shard) return Place{job, {TaskKind::kShard, 0, *shard}};
  }
  if (rest.starts_with("collect/")) {
    const auto part = NumberOf(rest.substr(8));
    if (part) return Place{job, {TaskKind::kCollect, 0, *part}};
  }
  if (rest.starts_with("proofs/")) {
    const std::string_view numbers = rest.substr(7);
    const std::size_t middle = numbers.find('/');
    if (middle == std::string_view::npos) return std::nullopt;
    const auto round = NumberOf(numbers.substr(0, middle));
    const auto index = NumberOf(numbers.substr(middle + 1));
    if (round && index) return Place{job, {TaskKind::kProofs, *round, *index}};
  }
  return std::nullopt;
}

bool Board::AreKnown(const std::vector<std::string>& stores) const {
  return std::all_of(stores.begin(), stores.end(), [&](const std::string& store) {
    return store.find(':') != std::string::npos || nodes_.contains(store);
  });
}

convert::StoreMap Board::StoresOf(const JobEntry& job) const {
  convert::StoreMap out;
  out.table = job.start->table;
  out.bucket_bits = job.start->bucket_bits;
  for (const std::string& store : job.start->stores) {
    const auto node = nodes_.find(store);
    out.endpoints.push_back(node == nodes_.end() ? store : node->second.address);
  }
  return out;
}

convert::Task Board::TaskOf(const JobEntry& job, const TaskKey& key) const {
  convert::Task out;
  out.id = IdOf(job, key);
  out.job_id = IdOf(job.number);
  if (key.kind == TaskKind::kProofs) {
    out.work = convert::ProofTask{options_.semantics_version, job.open.at(key).rules,
                                  options_.budget_scale};
    return out;
  }
  const JobSpec& spec = job.submit.spec;
  convert::EnumerationTask enumeration;
  enumeration.universe = spec.universe;
  enumeration.max_operators = spec.max_operators;
  enumeration.mode = spec.mode;
  enumeration.shards = job.start->shards;
  enumeration.memory_limit_bytes =
      spec.memory_limit_bytes != 0 ? spec.memory_limit_bytes : options_.worker_memory_bytes;
  enumeration.time_limit = spec.time_limit;
  enumeration.stores = StoresOf(job);
  // Parts lie on all stores in turn.
  const auto store_of = [&](std::uint32_t part) {
    return static_cast<std::uint32_t>(part % job.start->stores.size());
  };
  if (key.kind == TaskKind::kShard) {
    out.work = convert::ShardTask{std::move(enumeration), key.index};
  } else if (key.kind == TaskKind::kCollect) {
    const std::uint64_t parts = PartsOf(*job.start);
    const auto first_of = [&](std::uint64_t part) {
      return static_cast<std::uint32_t>((part << job.start->bucket_bits) / parts);
    };
    out.work =
        convert::CollectTask{std::move(enumeration), PartOf(out.job_id, key.index),
                             first_of(key.index), first_of(key.index + 1), store_of(key.index)};
  } else {
    convert::JoinTask join{std::move(enumeration), {}, ArtifactOf(out.job_id)};
    for (const auto& [part, record] : job.parts) {
      join.parts.push_back({PartOf(out.job_id, part), store_of(part), record.result.artifact_bytes,
                            record.result.artifact_sha256});
    }
    out.work = std::move(join);
  }
  return out;
}

// ------------------------------------------------------------------------------------ giving

void Board::AddOpen(JobEntry& job, const TaskKey& key, OpenTask task) {
  if (!job.open.emplace(key, std::move(task)).second) return;
  job.idle.insert(key);
  ++revision_;
}

void Board::CloseTask(JobEntry& job, const TaskKey& key, Now now) {
  const auto it = job.open.find(key);
  if (it == job.open.end()) return;
  if (!it->second.attempts.empty()) {
    Mean& mean = job.durations[key.kind];
    ++mean.count;
    mean.sum += std::chrono::duration_cast<Milliseconds>(now.monotonic -
                                                         it->second.attempts.front().started);
  }
  job.open.erase(it);
  job.idle.erase(key);
  job.leased.erase(key);
}

convert::Lease Board::Grant(JobEntry& job, const TaskKey& key, const std::string& node, Now now) {
  OpenTask& task = job.open.at(key);
  Attempt attempt;
  attempt.lease_id = fmt::format("{}-{}:{}", epoch_, next_lease_++, IdOf(job, key));
  attempt.node = node;
  attempt.started = now.monotonic;
  attempt.expires = now.monotonic + options_.lease_ttl;
  attempt.number = ++task.made;
  task.attempts.push_back(attempt);
  job.idle.erase(key);
  job.leased.insert(key);
  ++totals_.leases_given[static_cast<std::size_t>(key.kind)];
  Changed(job);
  return {attempt.lease_id, TaskOf(job, key), options_.lease_ttl, attempt.number};
}

bool Board::IsStraggler(const JobEntry& job, const TaskKey& key, const std::string& node,
                        Now now) const {
  const OpenTask& task = job.open.at(key);
  if (task.attempts.size() >= kAttemptsMax) return false;
  const Attempt& first = task.attempts.front();
  if (first.node == node) return false;
  Milliseconds limit = options_.straggler_min;
  const auto mean = job.durations.find(key.kind);
  if (mean != job.durations.end() && mean->second.count > 0) {
    const auto average = mean->second.sum / static_cast<std::int64_t>(mean->second.count);
    limit = std::max(limit, average * options_.straggler_factor);
  } else {
    limit = std::max(limit, options_.lease_ttl);
  }
  return now.monotonic - first.started >= limit;
}

std::vector<convert::Lease> Board::Lease(const convert::LeaseRequest& request, Now now) {
  std::vector<convert::Lease> out;
  if (const auto before = leases_by_request_.find(request.request_id);
      before != leases_by_request_.end()) {
    for (const std::string& id : before->second) {
      const auto place = Locate(std::string_view(id).substr(id.find(':') + 1));
      if (!place) continue;
      const auto task = place->job->open.find(place->key);
      if (task == place->job->open.end()) continue;
      for (const Attempt& a : task->second.attempts) {
        if (a.lease_id != id) continue;
        out.push_back({id, TaskOf(*place->job, place->key), options_.lease_ttl, a.number});
      }
    }
    return out;
  }
  const auto wants = [&](TaskKind kind) {
    return std::find(request.kinds.begin(), request.kinds.end(), kind) != request.kinds.end();
  };
  const auto each_job = [&](const auto& visit) {
    for (const auto& [priority, number] : active_) {
      if (out.size() >= request.max_leases) return;
      JobEntry& job = jobs_.at(number);
      if (!job.status.paused) visit(job);
    }
  };
  each_job([&](JobEntry& job) {
    const bool stores = job.start && AreKnown(job.start->stores);
    for (const TaskKind kind :
         {TaskKind::kShard, TaskKind::kCollect, TaskKind::kJoin, TaskKind::kProofs}) {
      if (!wants(kind) || (kind != TaskKind::kProofs && !stores)) continue;
      auto it = job.idle.lower_bound({kind, 0, 0});
      while (it != job.idle.end() && it->kind == kind && out.size() < request.max_leases) {
        const TaskKey key = *it++;  // Granting takes it out.
        out.push_back(Grant(job, key, request.node_id, now));
      }
    }
  });
  if (out.empty()) {
    each_job([&](JobEntry& job) {
      const std::vector<TaskKey> leased(job.leased.begin(), job.leased.end());
      for (const TaskKey& key : leased) {
        if (!out.empty()) return;  // One at a time: it is a bet.
        if (wants(key.kind) && IsStraggler(job, key, request.node_id, now)) {
          out.push_back(Grant(job, key, request.node_id, now));
        }
      }
    });
  }
  if (out.empty()) return out;  // Asking again under this id may find some.
  std::vector<std::string>& ids = leases_by_request_[request.request_id];
  for (const convert::Lease& lease : out) ids.push_back(lease.id);
  recent_.push_back({now.monotonic, request.request_id});
  while (recent_.size() > kRecentMax || now.monotonic - recent_.front().at > kRecentFor) {
    leases_by_request_.erase(recent_.front().request_id);
    recent_.pop_front();
  }
  return out;
}

// Whether the node keeps the lease.
bool Board::Extend(const Place& place, const std::string& id, const std::string& node, Now now) {
  JobEntry& job = *place.job;
  const auto it = job.open.find(place.key);
  if (it == job.open.end()) return false;
  OpenTask& task = it->second;
  const Now::Monotonic expires = now.monotonic + options_.lease_ttl;
  for (Attempt& a : task.attempts) {
    if (a.lease_id != id || a.node != node) continue;
    a.expires = expires;
    return true;
  }
  // A lease of an earlier epoch: this coordinator has been restarted, and the node goes on.
  const bool ours = id.starts_with(fmt::format("{}-", epoch_));
  if (ours || task.attempts.size() >= kAttemptsMax) return false;
  task.attempts.push_back({id, node, now.monotonic, expires, ++task.made});
  job.idle.erase(place.key);
  job.leased.insert(place.key);
  Changed(job);
  return true;
}

convert::HeartbeatResponse Board::Heartbeat(const convert::Heartbeat& beat, Now now) {
  Node& node = nodes_[beat.node_id];
  const bool news = node.id.empty() || node.address != beat.address;
  node.id = beat.node_id;
  node.role = beat.role;
  node.address = beat.address;
  node.version = beat.version;
  node.draining = beat.draining;
  node.seen = now.monotonic;
  // The node is known; what waits for stores and cannot be written down now starts with Tick.
  if (news && beat.role == "store") (void)StartWaiting(now);

  convert::HeartbeatResponse out;
  out.next_heartbeat = options_.lease_ttl / 3;
  for (const std::string& id : beat.lease_ids) {
    const std::size_t colon = id.find(':');
    const auto place =
        colon == std::string::npos ? std::nullopt : Locate(std::string_view(id).substr(colon + 1));
    if (!place || !Extend(*place, id, beat.node_id, now)) out.lost_lease_ids.push_back(id);
  }
  return out;
}

// ------------------------------------------------------------------------------------ taking

Status Board::Tick(Now now) {
  // Workers have a new id each time they start. Of stores, jobs may need the address.
  std::erase_if(nodes_, [&](const auto& entry) {
    return entry.second.role != "store" && now.monotonic - entry.second.seen > kForgetAfter;
  });
  RETURN_IF_ERROR(StartWaiting(now));
  const auto active = active_;  // Setting aside may end jobs.
  for (const auto& [priority, number] : active) {
    JobEntry& job = jobs_.at(number);
    // Nothing is open and nothing collected: what follows could not be written down before.
    if (job.start && !job.collect && job.open.empty()) RETURN_IF_ERROR(AfterShard(job, now));
    const std::vector<TaskKey> leased(job.leased.begin(), job.leased.end());
    for (const TaskKey& key : leased) {
      const auto task = job.open.find(key);
      if (task == job.open.end()) break;  // The job has ended.
      const std::vector<Attempt> attempts = task->second.attempts;
      for (const Attempt& a : attempts) {
        if (a.expires > now.monotonic) continue;
        ++totals_.leases_expired[static_cast<std::size_t>(key.kind)];
        Note("lease_expired", IdOf(job, key), a.node);
        RETURN_IF_ERROR(
            LoseAttempt(job, key, a.lease_id, fmt::format("node '{}' went silent", a.node), now));
      }
    }
  }
  ForgetNodes(now);
  return ForgetJobs(now);
}

Status Board::Release(const convert::Release& release, Now now) {
  const auto place = Locate(release.task_id);
  if (!place) return OkStatus();  // Whatever it was, nobody waits for it.
  return LoseAttempt(*place->job, place->key, release.lease_id, release.error, now);
}

Status Board::LoseAttempt(JobEntry& job, const TaskKey& key, const std::string& lease_id,
                          const std::string& error, Now now) {
  const auto it = job.open.find(key);
  if (it == job.open.end()) return OkStatus();
  OpenTask& task = it->second;
  const auto attempt = std::find_if(task.attempts.begin(), task.attempts.end(),
                                    [&](const Attempt& a) { return a.lease_id == lease_id; });
  if (attempt == task.attempts.end()) return OkStatus();
  const std::string node = attempt->node;
  task.attempts.erase(attempt);
  Changed(job);
  if (!error.empty()) {
    task.failed_nodes.push_back(node);
    task.last_error = error;
    Note("attempt_failed", IdOf(job, key), fmt::format("{}: {}", node, error));
  }
  if (!task.attempts.empty()) return OkStatus();
  job.leased.erase(key);
  job.idle.insert(key);
  if (task.failed_nodes.size() < options_.failures_max) return OkStatus();
  return SetAside(job, key, now);
}

Status Board::SetAside(JobEntry& job, const TaskKey& key, Now now) {
  const OpenTask& task = job.open.at(key);
  switch (key.kind) {
    case TaskKind::kShard: {
      const convert::SetAside aside{key.index, task.last_error, task.failed_nodes};
      store::Batch batch;
      batch.Put(store::Family::kJobs, KeyOf(JobKey::kSetAside, job.number, key.index),
                Encode(aside));
      RETURN_IF_ERROR(journal_.Write(batch));
      ++totals_.shards_set_aside;
      Note("shard_set_aside", IdOf(job, key), task.last_error);
      job.set_aside[key.index] = aside;
      CloseTask(job, key, now);
      Changed(job);
      return AfterShard(job, now);
    }
    case TaskKind::kCollect:
    case TaskKind::kJoin:
      return Fail(job.number,
                  fmt::format("collecting the classes failed {} times: {}",
                              task.failed_nodes.size(), task.last_error),
                  now);
    case TaskKind::kProofs:
      return SetAsideProofs(job, key, now);
  }
  return OkStatus();
}

}  // namespace tenon::board
