// The locks of core/base/mutex.h. Under preset tsan these tests also show that ThreadSanitizer
// understands the waits: each of them hands over a value that nothing else guards.
#include "core/base/mutex.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tenon::base {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Guarded {
  Mutex mutex;
  int value ABSL_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, WhoGivesTheLockBackWakesWhoWaits) {
  Guarded g;
  std::jthread other([&] {
    for (int k = 0; k < 100; ++k) {
      const MutexLock lock(g.mutex);
      ++g.value;
    }
  });
  const MutexLock lock(g.mutex);
  g.mutex.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(g.mutex) { return g.value == 100; });
  EXPECT_EQ(g.value, 100);
}

// Each turn is given away by a wait, not by an end of a lock.
TEST(MutexTest, WhoBeginsToWaitWakesTheOthers) {
  Guarded g;
  const auto play = [&](int me) {
    const MutexLock lock(g.mutex);
    for (int k = 0; k < 1000; ++k) {
      g.mutex.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(g.mutex) { return g.value % 3 == me; });
      ++g.value;
    }
  };
  {
    std::vector<std::jthread> players;
    for (int me = 0; me < 3; ++me) players.emplace_back(play, me);
  }
  const MutexLock lock(g.mutex);
  EXPECT_EQ(g.value, 3000);
}

TEST(MutexTest, AWaitWithAnEndSaysWhatItSaw) {
  Guarded g;
  const MutexLock lock(g.mutex);
  const auto set = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(g.mutex) { return g.value != 0; };
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(g.mutex.AwaitFor(set, 20ms));
  EXPECT_GE(Clock::now() - begin, 20ms);
  EXPECT_FALSE(g.mutex.AwaitUntil(set, begin));
  g.value = 1;
  EXPECT_TRUE(g.mutex.AwaitUntil(set, begin));
}

TEST(MutexTest, AWaitWithAnEndIsWokenBeforeIt) {
  Guarded g;
  std::jthread other([&] {
    const MutexLock lock(g.mutex);
    g.value = 1;
  });
  const MutexLock lock(g.mutex);
  EXPECT_TRUE(g.mutex.AwaitFor(
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(g.mutex) { return g.value == 1; }, 10min));
}

TEST(MutexTest, ASignalWakesAllWhoWaitForIt) {
  Guarded g;
  CondVar changed;
  int woken = 0;
  {
    std::vector<std::jthread> waiters;
    for (int k = 0; k < 3; ++k) {
      waiters.emplace_back([&] {
        const MutexLock lock(g.mutex);
        while (g.value == 0) changed.WaitUntil(g.mutex, Clock::now() + 10min);
        ++woken;
      });
    }
    const MutexLock lock(g.mutex);
    g.value = 1;
    changed.SignalAll();
  }
  EXPECT_EQ(woken, 3);
  const Clock::time_point end = Clock::now() + 20ms;
  const MutexLock lock(g.mutex);
  while (Clock::now() < end) changed.WaitUntil(g.mutex, end);
}

TEST(MutexTest, ReadersShareAndWritersDoNot) {
  SharedMutex mutex;
  int value = 0;
  {
    const ReaderLock first(mutex);
    std::jthread([&] { const ReaderLock second(mutex); }).join();
  }
  const auto work = [&] {
    for (int k = 0; k < 1000; ++k) {
      {
        const WriterLock lock(mutex);
        ++value;
      }
      const ReaderLock lock(mutex);
      EXPECT_GT(value, 0);
    }
  };
  { std::jthread one(work), two(work); }
  EXPECT_EQ(value, 2000);
}

}  // namespace
}  // namespace tenon::base
