// What a coordinator forgets: jobs that ended long ago, and nodes that are gone for good.
#include <algorithm>

#include "coordinator/board/board.h"

namespace tenon::board {
namespace {

constexpr std::size_t kForgottenAtOnce = 100;  // In one write, while everybody waits.
// Workers and verifiers choose new ids whenever they start.
constexpr int kNodeKeptLeases = 10;

}  // namespace

bool Board::MayForget(const JobEntry& job) const {
  // Its number says which one the next job gets, also after a restart. Tables are found by the job
  // until they are dropped, and whoever reduces a job may still ask for it.
  return job.number + 1 != next_job_ && !tables_.contains(job.number) && !job.claimed;
}

Status Board::ForgetJobs(Now now) {
  store::Batch batch;
  std::vector<std::pair<UnixTime, std::uint64_t>> forgotten;
  std::size_t kept = ended_.size();
  for (const auto& [ended_at, number] : ended_) {
    const bool old = now.wall - ended_at >= options_.ended_jobs_kept_for;
    if ((kept <= options_.ended_jobs_max && !old) || forgotten.size() >= kForgottenAtOnce) break;
    const JobEntry& job = jobs_.at(number);
    if (!MayForget(job)) continue;
    for (const JobKey key : {JobKey::kSubmit, JobKey::kStart, JobKey::kStatus}) {
      batch.Delete(store::Family::kJobs, KeyOf(key, number));
    }
    for (const auto& [shard, aside] : job.set_aside) {
      batch.Delete(store::Family::kJobs, KeyOf(JobKey::kSetAside, number, shard));
    }
    forgotten.emplace_back(ended_at, number);
    --kept;
  }
  if (forgotten.empty()) return OkStatus();
  RETURN_IF_ERROR(journal_.Write(batch));
  for (const auto& entry : forgotten) {
    ended_.erase(entry);
    const auto job = jobs_.find(entry.second);
    job_by_request_.erase(job->second.submit.request_id);
    jobs_.erase(job);
  }
  ++revision_;
  return OkStatus();
}

// Stores stay: jobs know them by their ids, and there are few.
void Board::ForgetNodes(Now now) {
  std::erase_if(nodes_, [&](const auto& entry) {
    const Node& node = entry.second;
    return node.role != "store" &&
           now.monotonic - node.seen >= kNodeKeptLeases * options_.lease_ttl;
  });
}

}  // namespace tenon::board
