// Locks, for every room that has threads (core itself has none and takes none).
//
// Thin over the standard library, for three reasons: clang checks ABSL_GUARDED_BY and the like
// (-Wthread-safety, preset clang), which std::mutex cannot carry; ThreadSanitizer sees what happens
// in pthread functions but not in abseil's own locks, which Debian builds without it; and all waits
// go by the steady clock, so that a clock that jumps ends none early and leaves none hanging.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stop_token>

#include "absl/base/thread_annotations.h"

namespace tenon::base {

// A lock, with which its holder can also wait until a condition on what it guards is true: whoever
// gives the lock back wakes those who wait. Not recursive. Thread-safe.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  // Nothing here is touched once another thread can have the lock: it may end this object.
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    Wake();
    mutex_.unlock();
  }
  // Tells the analysis, and nobody else, that the caller holds it.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

  // Waits until `holds()` is true; it is called with the lock held, at least once, and must depend
  // only on what the lock guards.
  template <class Predicate>
  void Await(const Predicate& holds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (holds()) return;
    Waiting waiting(*this);
    do {
      changed_.wait(waiting.lock);
    } while (!holds());
  }
  // The same, at most until `end`: what `holds()` said last.
  template <class Predicate>
  bool AwaitUntil(const Predicate& holds, std::chrono::steady_clock::time_point end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (holds()) return true;
    Waiting waiting(*this);
    while (changed_.wait_until(waiting.lock, end) != std::cv_status::timeout) {
      if (holds()) return true;
    }
    return holds();
  }
  template <class Predicate>
  bool AwaitFor(const Predicate& holds, std::chrono::nanoseconds time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return AwaitUntil(holds, std::chrono::steady_clock::now() + time);
  }

 private:
  friend class CondVar;

  void Wake() {
    if (waiting_ > 0) changed_.notify_all();
  }

  // Lends the lock to a wait, which gives it back and takes it again.
  struct Waiting {
    explicit Waiting(Mutex& m) : mutex(m), lock(m.mutex_, std::adopt_lock) {
      mutex.Wake();  // For what the caller has changed.
      ++mutex.waiting_;
    }
    ~Waiting() {
      --mutex.waiting_;
      lock.release();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    Mutex& mutex;
    std::unique_lock<std::mutex> lock;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;  // Guarded by mutex_.
};

// Holds a lock for a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// For those who are woken only when somebody says so, where most holders of the lock change nothing
// that matters. Waits may end without a reason: the caller looks again. Thread-safe.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Waits for a signal, at most until `end`.
  void WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex.Wake();
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    signal_.wait_until(lock, end);
    lock.release();
  }
  void SignalAll() { signal_.notify_all(); }

 private:
  std::condition_variable signal_;
};

// A lock that many may hold for reading. Writers may be kept waiting by readers that always
// overlap. Thread-safe.
class ABSL_LOCKABLE SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() { mutex_.lock_shared(); }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~WriterLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.ReaderLock();
  }
  ~ReaderLock() ABSL_UNLOCK_FUNCTION() { mutex_.ReaderUnlock(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Sleeps, unless `stop` is requested first.
inline void SleepFor(std::chrono::nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}
// Sleeps until `stop` is requested.
inline void AwaitStop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, stop, [] { return false; });
}

}  // namespace tenon::base
