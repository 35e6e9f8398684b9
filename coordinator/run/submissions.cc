// Submissions: what they would take is found out before they become jobs.
#include <fmt/core.h>

#include "coordinator/run/coordinator.h"

namespace tenon::coordinator {
namespace {

constexpr std::size_t kSubmissionsMax = 100;
constexpr std::chrono::seconds kTick{1};
constexpr const char* kStops = "the coordinator stops";

}  // namespace

void Coordinator::Submit(convert::SubmitJob request, Submitted done) {
  bool stopping = false;
  {
    const base::MutexLock lock(mutex_);
    stopping = stopping_;
    if (!stopping && submissions_.size() < kSubmissionsMax) {
      submissions_.emplace_back(std::move(request), std::move(done));
      changed_.SignalAll();
      return;
    }
  }
  done(stopping ? base::Unavailable(kStops)
                : convert::WithDetails(
                      base::ResourceExhausted("too many submissions at once; try again"),
                      {.reason = "TOO_MANY_SUBMISSIONS", .retry_after = std::chrono::seconds(1)}));
}

void Coordinator::TakeSubmissions(std::stop_token stop) {
  while (true) {
    std::pair<convert::SubmitJob, Submitted> next;
    {
      const base::MutexLock lock(mutex_);
      while (submissions_.empty() && !stopping_) {
        changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kTick);
      }
      if (submissions_.empty()) return;
      next = std::move(submissions_.front());
      submissions_.pop_front();
    }
    const auto& [request, done] = next;
    if (stop.stop_requested()) {
      done(base::Unavailable(kStops));
    } else {
      done(Judge(request));
    }
  }
}

StatusOr<convert::Job> Coordinator::Judge(convert::SubmitJob request) {
  std::vector<std::string> stores;
  {
    const base::MutexLock lock(mutex_);
    if (auto before = board_->Repeated(request.request_id); before && !request.dry_run) {
      return *std::move(before);
    }
    for (const board::Node& node : board_->Nodes(world_.now())) {
      const bool there = node.role == "store" && !node.draining && !node.silent;
      if (there) stores.push_back(node.address);
    }
  }
  std::optional<convert::JobEstimate> estimate;
  if (world_.estimate) {
    convert::JobSpec spec = request.spec;
    spec.shards = board::ShardsFor(spec);
    ASSIGN_OR_RETURN(estimate, world_.estimate(spec));
    board::Limits limits = world_.limits;
    if (world_.disk_free && !stores.empty()) limits.disk_bytes = world_.disk_free(stores);
    RETURN_IF_ERROR(board::CheckEstimate(request.spec, *estimate, limits));
    request.spec.shards = board::ShardsFor(request.spec, estimate->graphs);
  }
  // A race with another publication shows when the pack is published.
  ASSIGN_OR_RETURN(const bool published,
                   world_.sink.Has(request.spec.pack_name, request.spec.pack_version));
  const base::MutexLock lock(mutex_);
  auto job = board_->Submit(request, published, world_.now());
  changed_.SignalAll();
  if (job.ok()) job->estimate = estimate;
  return job;
}

}  // namespace tenon::coordinator
