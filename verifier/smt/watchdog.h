// Stops a query of Z3 that ignores its limits.
//
// Queries are bounded by rlimit, which is deterministic; real arithmetic has been seen to ignore it
// for minutes. The watchdog interrupts the context after a wall-clock time that no healthy query
// comes near. An interrupted query is `unknown`, and a verdict that saw one must not be cached.
#pragma once

#include <z3++.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "core/base/mutex.h"

namespace tenon::smt {

// Thread-compatible: one query at a time, from one thread.
class Watchdog {
 public:
  // `context` outlives the watchdog. Starts its thread with the first query.
  Watchdog(z3::context& context, std::chrono::milliseconds limit)
      : context_(context), limit_(limit) {}
  ~Watchdog();

  // Between Begin and End the context is interrupted once the limit has passed.
  void Begin();
  // Whether it was.
  bool End();

 private:
  void Run();

  z3::context& context_;
  const std::chrono::milliseconds limit_;
  base::Mutex mutex_;
  std::uint64_t query_ ABSL_GUARDED_BY(mutex_) = 0;  // Odd: one is running.
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool fired_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tenon::smt
