#include "client/rpc/node.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "client/rpc/work_client.h"
#include "core/base/check.h"
#include "core/base/kill_point.h"
#include "core/base/mutex.h"

namespace tenon::rpc {
namespace {

// Errors that repeating does not cure.
bool IsFinal(const Status& s) {
  switch (s.code()) {
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInvalidArgument:
      return true;
    default:  // Not one of our enums.
      return false;
  }
}

constexpr Milliseconds kHeartbeatMin{100};
constexpr Milliseconds kHeartbeatMax{30'000};
constexpr Milliseconds kTroublePause{1'000};

class Node {
 public:
  Node(const std::shared_ptr<Connection>& coordinator, const NodeOptions& options, const Work& work)
      : client_(coordinator), options_(options), work_(work) {}

  Status Run(const std::stop_token& stop) {
    {
      std::jthread beats([this](std::stop_token end) { Beat(end); });
      const std::stop_callback leave(stop, [this] { Leave(); });
      std::vector<std::jthread> slots;
      for (unsigned k = 0; k < options_.slots; ++k) slots.emplace_back([this, k] { Slot(k); });
      slots.clear();  // Joins.
    }
    const base::MutexLock lock(mutex_);
    return stop.stop_requested() ? OkStatus() : failed_;
  }

 private:
  // Everything of this node ends; tasks are given back.
  void Leave() {
    stop_.request_stop();
    const base::MutexLock lock(mutex_);
    for (auto& [lease, source] : running_) source.request_stop();
  }

  void Tell(NodeEvent::Kind kind, const std::string& task, const std::string& message = "") const {
    if (options_.on_event) options_.on_event({kind, task, message});
  }

  void Slot(unsigned slot) {
    const std::stop_token stop = stop_.get_token();
    while (!stop.stop_requested()) {
      const auto answer = client_.Lease({.node_id = options_.identity.id,
                                         .kinds = options_.kinds,
                                         .max_leases = 1,
                                         .wait = options_.lease_wait},
                                        stop);
      if (stop.stop_requested() && !answer.ok()) return;
      if (!answer.ok()) {
        Tell(NodeEvent::Kind::kTrouble, "", base::Message(answer.status()));
        if (IsFinal(answer.status())) {
          {
            const base::MutexLock lock(mutex_);
            failed_ = answer.status();
          }
          return Leave();
        }
        base::SleepFor(kTroublePause, stop);
        continue;
      }
      for (const convert::Lease& lease : answer->leases) WorkOn(slot, lease);
      if (answer->leases.empty()) base::SleepFor(answer->retry_after, stop);
    }
  }

  void WorkOn(unsigned slot, const convert::Lease& lease) {
    Tell(NodeEvent::Kind::kLeased, lease.task.id);
    std::stop_source source;
    {
      const base::MutexLock lock(mutex_);
      running_.insert_or_assign(lease.id, source);
      if (stop_.stop_requested()) source.request_stop();
    }
    auto outcome = source.stop_requested() ? StatusOr<Outcome>(absl::CancelledError("leaving"))
                                           : work_(slot, lease.task, source.get_token());
    if (outcome.ok()) {
      Report(lease, *std::move(outcome));
    } else {
      GiveBack(lease, outcome.status(), source.stop_requested());
    }
    const base::MutexLock lock(mutex_);
    running_.erase(lease.id);
  }

  void Report(const convert::Lease& lease, Outcome outcome) {
    // Not ended by a stop: what was done is worth the few seconds that it takes to say so; but a
    // node that leaves does not wait for a coordinator that is away.
    const Milliseconds limit =
        stop_.stop_requested() ? kQuickCall : Milliseconds(std::chrono::minutes(5));
    TENON_KILL_POINT("node.report.before");
    const auto needed =
        client_.Complete({.lease_id = lease.id,
                          .task_id = lease.task.id,
                          .node_id = options_.identity.id,
                          .cpu = outcome.cpu,
                          .result = std::move(outcome.result)},
                         stop_.stop_requested() ? std::stop_token() : stop_.get_token(), limit);
    TENON_KILL_POINT("node.report.after");
    if (needed.ok()) {
      return Tell(*needed ? NodeEvent::Kind::kCompleted : NodeEvent::Kind::kUnneeded,
                  lease.task.id);
    }
    Tell(NodeEvent::Kind::kTrouble, lease.task.id, base::Message(needed.status()));
    if (IsFinal(needed.status())) GiveBack(lease, needed.status(), false);
  }

  void GiveBack(const convert::Lease& lease, const Status& why, bool stopped) {
    const bool leaving = stop_.stop_requested();
    if (stopped && !leaving) return Tell(NodeEvent::Kind::kLost, lease.task.id);
    const Status s = client_.Release({.lease_id = lease.id,
                                      .task_id = lease.task.id,
                                      .node_id = options_.identity.id,
                                      .error = leaving ? "" : base::Message(why)},
                                     {}, leaving ? Milliseconds(3'000) : kQuickCall);
    Tell(NodeEvent::Kind::kReleased, lease.task.id, base::Message(leaving ? s : why));
  }

  void Beat(const std::stop_token& end) {
    Milliseconds pause = options_.heartbeat;
    while (!end.stop_requested()) {
      convert::Heartbeat beat{.node_id = options_.identity.id,
                              .role = options_.identity.role,
                              .address = options_.identity.address,
                              .version = options_.identity.version,
                              .draining = stop_.stop_requested()};
      {
        const base::MutexLock lock(mutex_);
        for (const auto& [lease, source] : running_) beat.lease_ids.push_back(lease);
      }
      const auto answer = client_.Heartbeat(beat);
      if (answer.ok()) {
        if (answer->next_heartbeat.count() > 0) {
          pause = std::clamp(answer->next_heartbeat, kHeartbeatMin, kHeartbeatMax);
        }
        const base::MutexLock lock(mutex_);
        for (const std::string& lost : answer->lost_lease_ids) {
          if (const auto it = running_.find(lost); it != running_.end()) it->second.request_stop();
        }
      }
      base::SleepFor(pause, end);
    }
  }

  const WorkClient client_;
  const NodeOptions& options_;
  const Work& work_;
  std::stop_source stop_;
  base::Mutex mutex_;
  std::map<std::string, std::stop_source> running_ ABSL_GUARDED_BY(mutex_);  // By lease.
  Status failed_ ABSL_GUARDED_BY(mutex_) = OkStatus();
};

}  // namespace

std::string NewNodeId() {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  std::string name(host);
  std::erase_if(name, [](char c) { return !convert::IsId(std::string(1, c)); });
  std::random_device device;
  return fmt::format("{}-{}-{:08x}", name.substr(0, 32), getpid(), device());
}

Status RunNode(std::shared_ptr<Connection> coordinator, const NodeOptions& options,
               const Work& work, std::stop_token stop) {
  CHECK(options.slots >= 1);
  Node node(coordinator, options, work);
  return node.Run(stop);
}

void SendHeartbeats(std::shared_ptr<Connection> coordinator, const NodeIdentity& identity,
                    std::stop_token stop) {
  const WorkClient client(std::move(coordinator));
  convert::Heartbeat beat{.node_id = identity.id,
                          .role = identity.role,
                          .address = identity.address,
                          .version = identity.version};
  while (!stop.stop_requested()) {
    Milliseconds pause = kTroublePause;
    const auto answer = client.Heartbeat(beat);
    if (answer.ok()) pause = std::clamp(answer->next_heartbeat, kTroublePause, kHeartbeatMax);
    base::SleepFor(pause, stop);
  }
  // The last word: no new jobs for this store.
  beat.draining = true;
  client.Heartbeat(beat).status().IgnoreError();
}

}  // namespace tenon::rpc
