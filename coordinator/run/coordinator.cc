#include "coordinator/run/coordinator.h"

#include <atomic>
#include <utility>

#include <fmt/core.h>

namespace tenon::coordinator {
namespace {

using board::Now;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kTick{1};
constexpr std::chrono::seconds kRetryPause{2};
constexpr std::chrono::milliseconds kRetryLease{500};

// Holds the lock, and wakes everybody when it is given back.
class ABSL_SCOPED_LOCKABLE WakeLock {
 public:
  WakeLock(base::Mutex& mutex, base::CondVar& changed) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex), changed_(changed) {
    mutex_.Lock();
  }
  ~WakeLock() ABSL_UNLOCK_FUNCTION() {
    changed_.SignalAll();
    mutex_.Unlock();
  }
  WakeLock(const WakeLock&) = delete;
  WakeLock& operator=(const WakeLock&) = delete;

 private:
  base::Mutex& mutex_;
  base::CondVar& changed_;
};

}  // namespace

StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(World world, board::Options options,
                                                          unsigned reducers) {
  ASSIGN_OR_RETURN(auto board, board::Board::Open(world.journal, std::move(options), world.now()));
  std::unique_ptr<Coordinator> out(new Coordinator(std::move(world), std::move(board)));
  Coordinator* const self = out.get();
  self->threads_.emplace_back([self](std::stop_token stop) { self->Dispatch(stop); });
  self->threads_.emplace_back([self](std::stop_token stop) { self->TakeSubmissions(stop); });
  self->threads_.emplace_back([self](std::stop_token stop) { self->DropTables(stop); });
  for (unsigned k = 0; k < reducers; ++k) {
    self->threads_.emplace_back([self](std::stop_token stop) { self->ReduceJobs(stop); });
  }
  return out;
}

Coordinator::Coordinator(World world, std::unique_ptr<board::Board> board)
    : world_(std::move(world)), board_(std::move(board)) {}

Coordinator::~Coordinator() {
  Stop();
  threads_.clear();
}

void Coordinator::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  const WakeLock lock(mutex_, changed_);
  stopping_ = true;
}

void Coordinator::Log(std::string_view event, std::string_view about,
                      std::string_view detail) const {
  if (world_.log) world_.log(event, about, detail);
}

// ------------------------------------------------------------------------------- calls

StatusOr<convert::Job> Coordinator::Get(const std::string& id) const {
  const base::MutexLock lock(mutex_);
  return board_->Get(id);
}

StatusOr<board::Board::Page> Coordinator::List(const convert::ListJobs& request) const {
  const base::MutexLock lock(mutex_);
  return board_->List(request);
}

StatusOr<convert::Job> Coordinator::Control(const convert::ControlJob& request) {
  const WakeLock lock(mutex_, changed_);
  return board_->Control(request, world_.now());
}

convert::HeartbeatResponse Coordinator::Heartbeat(const convert::Heartbeat& heartbeat) {
  const WakeLock lock(mutex_, changed_);
  return board_->Heartbeat(heartbeat, world_.now());
}

StatusOr<bool> Coordinator::Complete(const convert::Complete& complete) {
  const WakeLock lock(mutex_, changed_);
  return board_->Complete(complete, world_.now());
}

Status Coordinator::Release(const convert::Release& release) {
  const WakeLock lock(mutex_, changed_);
  return board_->Release(release, world_.now());
}

Coordinator::Figures Coordinator::figures() const {
  const base::MutexLock lock(mutex_);
  return {board_->epoch(), waits_.size(), submissions_.size(), board_->figures(),
          board_->Nodes(world_.now())};
}

// ------------------------------------------------------------------------------- waiting

void Coordinator::Add(Wait wait) {
  std::function<void()> finish;
  {
    const base::MutexLock lock(mutex_);
    if (!wait.poll(world_.now(), stopping_, finish)) {
      waits_.push_back(std::move(wait));
      return;
    }
  }
  finish();
}

void Coordinator::Lease(const convert::LeaseRequest& request, std::shared_ptr<Waiter> waiter,
                        std::function<void(convert::LeaseResponse)> done) {
  const Now::Monotonic deadline = world_.now().monotonic + request.wait;
  Wait wait;
  wait.waiter = waiter;
  for (const convert::TaskKind kind : request.kinds) wait.kinds |= 1u << unsigned(kind);
  wait.poll = [this, request, waiter = std::move(waiter), done = std::move(done), deadline](
                  Now now, bool stopping, std::function<void()>& finish) {
    mutex_.AssertHeld();
    convert::LeaseResponse response;
    const bool over = stopping || waiter->gone || now.monotonic >= deadline;
    // Also at the deadline: a wait of zero is one try.
    if (!stopping && !waiter->gone) response.leases = board_->Lease(request, now);
    if (response.leases.empty() && !over) return false;
    if (response.leases.empty()) response.retry_after = kRetryLease;
    finish = [done, response = std::move(response)] { done(response); };
    return true;
  };
  Add(std::move(wait));
}

void Coordinator::Watch(const std::string& id, std::uint64_t revision, Now::Monotonic not_before,
                        std::shared_ptr<Waiter> waiter,
                        std::function<void(StatusOr<convert::Job>)> done) {
  Wait wait;
  wait.waiter = waiter;
  wait.poll = [this, id, revision, not_before, waiter = std::move(waiter), done = std::move(done)](
                  Now now, bool stopping, std::function<void()>& finish) {
    mutex_.AssertHeld();
    StatusOr<convert::Job> job = absl::CancelledError("the watch was ended");
    if (stopping) {
      job = base::Unavailable("the coordinator stops");
    } else if (!waiter->gone) {
      job = board_->Get(id);
      const bool waits = job.ok() && (job->revision <= revision || now.monotonic < not_before);
      if (waits) return false;
    }
    finish = [done, job = std::move(job)] { done(job); };
    return true;
  };
  Add(std::move(wait));
}

// What has changed may end any wait; who wants the same kinds of tasks as somebody who just got
// none gets none, either. Stragglers, and ends of waits, are looked for with each tick (`all`).
void Coordinator::Poll(bool all, std::vector<std::function<void()>>& finished) {
  const Now now = world_.now();
  std::uint32_t dry = 0;  // Bit k: no task for those who want the kinds k.
  for (auto it = waits_.begin(); it != waits_.end();) {
    if (!all && !stopping_ && it->kinds != 0 && (dry >> it->kinds & 1) != 0 && !it->waiter->gone) {
      ++it;
      continue;
    }
    std::function<void()> finish;
    if (it->poll(now, stopping_, finish)) {
      finished.push_back(std::move(finish));
      it = waits_.erase(it);
    } else {
      if (it->kinds != 0) dry |= 1u << it->kinds;
      ++it;
    }
  }
}

void Coordinator::Dispatch(std::stop_token stop) {
  std::uint64_t seen = 0;
  Clock::time_point tick = Clock::now();
  while (true) {
    std::vector<std::function<void()>> finished;
    std::vector<board::Event> events;
    Status ticked;
    bool ends = false;
    {
      const base::MutexLock lock(mutex_);
      const Clock::time_point now = Clock::now();
      const bool all = now >= tick;
      if (all) {
        ticked = board_->Tick(world_.now());
        tick = now + kTick;
        changed_.SignalAll();
      }
      seen = board_->revision();
      Poll(all, finished);
      events = board_->TakeEvents();
      ends = stop.stop_requested() && waits_.empty();
    }
    for (const auto& finish : finished) finish();
    for (const board::Event& event : events) Log(event.name, event.about, event.detail);
    if (!ticked.ok()) Log("tick_failed", "", base::Message(ticked));
    if (ends) return;
    const base::MutexLock lock(mutex_);
    while (board_->revision() == seen && !stopping_ && Clock::now() < tick) {
      changed_.WaitUntil(mutex_, tick);
    }
  }
}

void Coordinator::AwaitChange(std::uint64_t revision) const {
  const base::MutexLock lock(mutex_);
  const Clock::time_point end = Clock::now() + kTick;
  while (board_->revision() == revision && !stopping_ && Clock::now() < end) {
    changed_.WaitUntil(mutex_, end);
  }
}

void Coordinator::Pause() const {
  const base::MutexLock lock(mutex_);
  const Clock::time_point end = Clock::now() + kRetryPause;
  while (!stopping_ && Clock::now() < end) changed_.WaitUntil(mutex_, end);
}

}  // namespace tenon::coordinator
