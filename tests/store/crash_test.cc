// A store is killed while it is written to, again and again; whatever was acknowledged is there
// afterwards, and a run is there as a whole or not at all.
#include <signal.h>

#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "store/run.h"
#include "tests/support/process.h"

namespace tenon::store {
namespace {

// How many records each shard has in the store.
std::map<std::uint64_t, int> Shards(const std::string& directory) {
  std::map<std::uint64_t, int> out;
  const auto store = Store::Open(directory, {.create = false});
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return out;
  EXPECT_TRUE((*store)->Verify().ok());
  const Status s = ForEachClass(**store, {1, 4},
                                [&](const base::Fingerprint&, std::span<const std::uint64_t> ids) {
                                  for (std::uint64_t id : ids) ++out[id];
                                  return OkStatus();
                                });
  EXPECT_TRUE(s.ok()) << s;
  return out;
}

class StoreCrashTest : public ::testing::Test {
 protected:
  // Runs the writer until it dies; checks the store.
  void Run(const testing::RunOptions& options) {
    const testing::RunResult result =
        testing::Run({STORE_WRITER, folder_ / "db", std::to_string(next_)}, options);
    EXPECT_EQ(result.signal, SIGKILL) << result.err;
    std::istringstream lines(result.out);
    const int first = next_;
    for (int shard; lines >> shard;) next_ = shard + 1;
    const auto shards = Shards(folder_ / "db");
    for (int shard = 0; shard < next_; ++shard) {
      ASSERT_EQ(shards.count(std::uint64_t(shard)), 1u)
          << "acknowledged shard " << shard << " is lost";
    }
    for (const auto& [shard, records] : shards) {
      EXPECT_EQ(records, 500) << "half a run: shard " << shard;
      EXPECT_LE(shard, std::uint64_t(next_));  // One more may be written and not acknowledged.
    }
    written_ += next_ - first;
  }
  testing::TempFolder folder_;
  int next_ = 0;
  int written_ = 0;
};

TEST_F(StoreCrashTest, AcknowledgedRunsSurviveKillPoints) {
  for (const char* point : {"store.write.before:1", "store.write.after:1", "store.write.before:4",
                            "store.write.after:6", "store.write.before:2"}) {
    SCOPED_TRACE(point);
    Run({.environment = {{"TENON_KILL_POINT", point}}});
  }
  EXPECT_EQ(written_, 0 + 0 + 3 + 5 + 1);
}

TEST_F(StoreCrashTest, AcknowledgedRunsSurviveKillsAtAnyTime) {
  for (int k = 1; k <= 8; ++k) {
    // Killed when it has acknowledged a few: at an arbitrary moment of the next write.
    Run({.signal = SIGKILL, .signal_after = std::to_string(next_ + 3 * k) + "\n"});
  }
  EXPECT_GE(written_, 8 * 9 / 2 * 3);
}

}  // namespace
}  // namespace tenon::store
