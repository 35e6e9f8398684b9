#include "coordinator/board/figures.h"

#include <utility>

#include "coordinator/board/board.h"

namespace tenon::board {
namespace {

constexpr std::size_t kEventsMax = 1000;

}  // namespace

Figures Board::figures() const {
  Figures out;
  out.totals = totals_;
  for (const auto& [number, job] : jobs_) {
    ++out.jobs[static_cast<std::size_t>(StateOf(job))];
    if (HasEnded(job)) continue;
    for (const auto& [key, task] : job.open) {
      const auto kind = static_cast<std::size_t>(key.kind);
      // Nobody is to take what is paused.
      out.open[kind] += job.status.paused && task.attempts.empty() ? 0 : 1;
      out.leases[kind] += task.attempts.size();
    }
    if (job.start) out.shards_left += job.start->shards - job.shards_done;
    out.proofs_left += job.round_distinct - job.verdicts.size();
  }
  return out;
}

void Board::Note(const char* event, std::string about, std::string detail) {
  if (events_.size() < kEventsMax) {
    events_.push_back({event, std::move(about), std::move(detail)});
  }
}

std::vector<Event> Board::TakeEvents() { return std::exchange(events_, {}); }

std::vector<Node> Board::Nodes(Now now) const {
  std::vector<Node> out;
  for (const auto& [id, node] : nodes_) {
    out.push_back(node);
    out.back().silent = now.monotonic - node.seen > options_.lease_ttl;
  }
  for (const auto& [priority, number] : active_) {
    const JobEntry& job = jobs_.at(number);
    for (const TaskKey& key : job.leased) {
      for (const Attempt& a : job.open.at(key).attempts) {
        for (Node& node : out) node.leases += node.id == a.node ? 1 : 0;
      }
    }
  }
  return out;
}

}  // namespace tenon::board
