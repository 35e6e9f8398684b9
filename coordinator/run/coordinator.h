// Coordinator: the shell around the board. Threads, waiting, clocks; it decides nothing.
//
// One lock around the board, held for microseconds, or for a synced write. One thread wakes who
// waits (for leases, for changes of a job) and ticks once a second; one judges submissions, since
// an estimate takes up to a second. A few threads reduce: each takes a job whose classes are
// collected, from its artifact to its pack.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "coordinator/board/board.h"
#include "coordinator/board/limits.h"
#include "coordinator/publish/sink.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/graph/classes.h"

namespace tenon::registry {
class SigningKey;
}  // namespace tenon::registry

namespace tenon::coordinator {

// What a coordinator needs of the world. The references outlive it.
struct World {
  board::Journal& journal;
  PackSink& sink;
  const registry::SigningKey* key = nullptr;  // Null: packs are unsigned.
  std::string code_version;
  std::function<board::Now()> now;
  // OK, or what to answer instead of serving: another coordinator may lead by now. May be empty.
  std::function<Status()> leads;
  // Reads the artifact from store 0 and checks its hash. Unavailable and ResourceExhausted: it is
  // tried again.
  std::function<StatusOr<graph::TermClasses>(const board::Collected&, std::stop_token)>
      read_classes;
  // Removes a table from its stores.
  std::function<Status(const board::Table&, std::stop_token)> drop_table;
  // What a job would take; its `shards` are set. Null: jobs are taken without an estimate.
  std::function<StatusOr<convert::JobEstimate>(const convert::JobSpec&)> estimate;
  // What is free on the stores at these addresses; absent when one of them does not say. May be
  // null.
  std::function<std::optional<std::uint64_t>(const std::vector<std::string>&)> disk_free;
  // Of a job; `disk_bytes` is asked for.
  board::Limits limits;
  // Told of events worth a line in the log: name, id of a job or a task, detail. May be empty.
  std::function<void(std::string_view event, std::string_view about, std::string_view detail)> log;
};

// Thread-safe.
class Coordinator {
 public:
  // Reads the journal and starts the threads; `reducers` jobs are reduced at a time.
  static StatusOr<std::unique_ptr<Coordinator>> Start(World world, board::Options options,
                                                      unsigned reducers);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator();  // Stop, and wait for the threads.

  // Ends all waits: their callbacks come now, without leases. Repeating is harmless.
  void Stop();

  // Whether this one may still answer. To be asked before each of the calls below; what is written
  // by one that may not fails anyway.
  Status Leads() const { return world_.leads ? world_.leads() : OkStatus(); }

  // Estimates the job, compares that with the limits, and goes on as board::Board: in a thread of
  // its own, one job at a time, which then calls `done`. ResourceExhausted: above a limit, or too
  // many are waiting for this. Unavailable: the coordinator stops.
  using Submitted = std::function<void(StatusOr<convert::Job>)>;
  void Submit(convert::SubmitJob request, Submitted done);

  // As board::Board.
  StatusOr<convert::Job> Get(const std::string& id) const;
  StatusOr<board::Board::Page> List(const convert::ListJobs& request) const;
  StatusOr<convert::Job> Control(const convert::ControlJob& request);
  convert::HeartbeatResponse Heartbeat(const convert::Heartbeat& heartbeat);
  StatusOr<bool> Complete(const convert::Complete& complete);
  Status Release(const convert::Release& release);

  // Somebody who waits. `gone` may be set at any time: then it gets nothing, but its callback.
  struct Waiter {
    std::atomic<bool> gone{false};
  };
  // Calls `done` once, from another thread or from this one: with leases, or with none when the
  // wait is over.
  void Lease(const convert::LeaseRequest& request, std::shared_ptr<Waiter> waiter,
             std::function<void(convert::LeaseResponse)> done);
  // Calls `done` once: when the job's revision is above `revision` and `not_before` is over.
  // NotFound; CANCELLED when the coordinator stops or the waiter is gone.
  void Watch(const std::string& id, std::uint64_t revision, board::Now::Monotonic not_before,
             std::shared_ptr<Waiter> waiter, std::function<void(StatusOr<convert::Job>)> done);

  // For metrics and pages.
  struct Figures {
    std::uint64_t epoch = 0;
    std::size_t waiters = 0;
    std::size_t submissions = 0;  // That wait for their estimate.
    board::Figures board;
    std::vector<board::Node> nodes;
  };
  Figures figures() const;

 private:
  // Whether the wait is over; then `finish` is set, to be called without the lock.
  struct Wait {
    std::shared_ptr<Waiter> waiter;
    std::uint32_t kinds = 0;  // Of leases, as bits; 0: it waits for something else.
    std::function<bool(board::Now now, bool stopping, std::function<void()>& finish)> poll;
  };

  Coordinator(World world, std::unique_ptr<board::Board> board);
  void Add(Wait wait);
  void Dispatch(std::stop_token stop);
  void Poll(bool all, std::vector<std::function<void()>>& finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeSubmissions(std::stop_token stop);
  StatusOr<convert::Job> Judge(convert::SubmitJob request);
  void DropTables(std::stop_token stop);
  void ReduceJobs(std::stop_token stop);
  // Waits until something has changed since `revision`, for a second at most.
  void AwaitChange(std::uint64_t revision) const;
  void Pause() const;  // Two seconds, unless it stops.
  Status ReduceJob(const board::Collected& job, std::stop_token stop);
  StatusOr<std::vector<convert::VerdictKind>> Ask(std::uint64_t job, std::vector<std::string> rules,
                                                  std::stop_token stop);
  bool IsWanted(std::uint64_t job, const std::stop_token& stop) const;
  void Log(std::string_view event, std::string_view about, std::string_view detail) const;

  const World world_;
  mutable base::Mutex mutex_;
  mutable base::CondVar changed_;
  std::unique_ptr<board::Board> board_ ABSL_GUARDED_BY(mutex_);
  std::list<Wait> waits_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<convert::SubmitJob, Submitted>> submissions_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tenon::coordinator
