// A store process is killed while workers write to it: what was acknowledged is there, and what was
// not is sent again to its successor.
#include <signal.h>

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "client/rpc/run_writer.h"
#include "store/run.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"

namespace tenon::store {
namespace {

constexpr RunTable kTable{.job = 7, .bucket_bits = 0};

rpc::Run RunOf(std::uint32_t shard) {
  base::SplitMix64 random(shard);
  std::vector<Record> records;
  for (int k = 0; k < 2000; ++k) records.push_back({{random.Next(), random.Next()}, shard});
  std::sort(records.begin(), records.end());
  return {.table = kTable.job, .shard = shard, .data = EncodeRun(records)};
}

class StoreServiceCrashTest : public ::testing::Test {
 protected:
  void Start(const std::string& kill_point = "") {
    daemon_.reset();
    std::vector<std::pair<std::string, std::string>> environment;
    if (!kill_point.empty()) environment.emplace_back("TENON_KILL_POINT", kill_point);
    daemon_ = std::make_unique<testing::Daemon>(
        std::vector<std::string>{STORE_SERVER, folder_ / "db", listen_}, environment);
    listen_ = "127.0.0.1:" + daemon_->first_line();
  }
  std::map<std::uint64_t, int> Shards() {
    daemon_.reset();
    std::map<std::uint64_t, int> out;
    const auto store = Store::Open(folder_ / "db", {.create = false});
    EXPECT_TRUE(store.ok()) << store.status();
    const Status s = ForEachClass(
        **store, kTable, [&](const base::Fingerprint&, std::span<const std::uint64_t> ids) {
          for (const std::uint64_t id : ids) ++out[id];
          return OkStatus();
        });
    EXPECT_TRUE(s.ok()) << s;
    return out;
  }

  testing::TempFolder folder_;
  std::string listen_ = "127.0.0.1:0";
  std::unique_ptr<testing::Daemon> daemon_;
};

TEST_F(StoreServiceCrashTest, WhatWasAcknowledgedSurvivesAndTheRestIsSentAgain) {
  std::uint32_t shard = 0;
  for (const char* point : {"store.write.before:2", "store.write.after:2",
                            "store.acknowledge.before:2", "store.write.before:1"}) {
    SCOPED_TRACE(point);
    Start(point);
    rpc::RunWriter writer(*rpc::Connection::Open(listen_), rpc::Milliseconds(60'000), {});
    // Acknowledged before the kill, unless the very first write is the one that kills.
    ASSERT_TRUE(writer.Put(RunOf(shard++)).ok());
    if (std::string(point).ends_with(":2")) {
      ASSERT_TRUE(writer.Sync().ok());
    }
    for (int k = 0; k < 5; ++k) ASSERT_TRUE(writer.Put(RunOf(shard++)).ok());
    EXPECT_EQ(daemon_->Wait(), SIGKILL);
    const std::size_t before = Shards().size();
    EXPECT_GE(before, std::string(point).ends_with(":2") ? shard - 5 : shard - 6);
    Start();
    ASSERT_TRUE(writer.Sync().ok());
    EXPECT_GE(writer.streams(), 2u);
    const auto after = Shards();
    EXPECT_EQ(after.size(), shard);
    for (const auto& [id, records] : after) EXPECT_EQ(records, 2000) << id;
  }
}

TEST_F(StoreServiceCrashTest, KillsAtAnyTimeLoseNothing) {
  Start();
  rpc::RunWriter writer(*rpc::Connection::Open(listen_), rpc::Milliseconds(60'000), {});
  std::uint32_t shard = 0;
  for (int times = 0; times < 5; ++times) {
    const std::uint32_t acknowledged = shard;
    for (int k = 0; k < 40; ++k) ASSERT_TRUE(writer.Put(RunOf(shard++)).ok());
    daemon_->Signal(SIGKILL);
    daemon_->Wait();
    const auto shards = Shards();
    for (std::uint32_t s = 0; s < acknowledged; ++s) ASSERT_EQ(shards.count(s), 1u) << s;
    for (const auto& [id, records] : shards) EXPECT_EQ(records, 2000) << "half a run: " << id;
    Start();
    ASSERT_TRUE(writer.Sync().ok());
  }
  EXPECT_EQ(Shards().size(), shard);
}

}  // namespace
}  // namespace tenon::store
