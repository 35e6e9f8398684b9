// Several coordinators with one etcd: one leads, another one takes over, and the packs are those
// that one machine makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <random>
#include <thread>

#include "client/etcd/client.h"
#include "tests/e2e/cluster.h"
#include "tests/e2e/storm.h"
#include "tests/support/etcd.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using testing::RunResult;

// Who leads, and for how long it took that to be somebody else.
class Watcher {
 public:
  Watcher(const testing::Etcd& etcd, Cluster& cluster)
      : client_(*etcd::Client::Open({.endpoints = etcd.endpoints()})), cluster_(cluster) {}

  std::string Address() const {
    const auto leader = client_->Get("/tenon/leader", 30s);
    return leader.ok() && *leader ? (*leader)->value : "";
  }
  // The leader's service; waits until there is a leader other than `not_this`.
  Service& Leader(const std::string& not_this = "") const {
    const auto end = Clock::now() + 120s;
    std::string address;
    while ((address = Address()).empty() || address == not_this) {
      if (Clock::now() > end) ADD_FAILURE() << "nobody leads\n" << cluster_.Logs();
      if (Clock::now() > end) break;
      std::this_thread::sleep_for(20ms);
    }
    for (const auto& service : cluster_.services()) {
      const auto& a = service->arguments();
      if (std::find(a.begin(), a.end(), address) != a.end() && a[0] == "coordinator") {
        return *service;
      }
    }
    ADD_FAILURE() << address << " is none of ours";
    return cluster_.coordinator();
  }

 private:
  std::unique_ptr<etcd::Client> client_;
  Cluster& cluster_;
};

TEST(HaTest, AStandbyTakesOverWhenTheLeaderIsKilled) {
  testing::Etcd etcd;
  Cluster cluster({.etcd = etcd.endpoints()});
  const Watcher watcher(etcd, cluster);
  const std::string reference = Reference(cluster, "2");
  const char* given = std::getenv("TENON_STORM_SEED");
  std::mt19937 random(given != nullptr ? unsigned(std::atoi(given)) : 1);
  constexpr int kKills = 2;
  int kills = 0;
  for (int n = 0; kills < kKills; ++n) {
    const std::string version = "1.0." + std::to_string(n);
    std::atomic<bool> ended{false};
    RunResult job;
    std::jthread waits([&] {
      job = Submit(cluster, "2", version);
      ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200 + random() % 1500));
    if (!ended) {
      const std::string before = watcher.Address();
      Service& leader = watcher.Leader();
      leader.Kill();
      const auto killed = Clock::now();
      watcher.Leader(before);
      std::printf("taken over after %.1f s\n",
                  std::chrono::duration<double>(Clock::now() - killed).count());
      leader.Start();
      ++kills;
    }
    waits.join();
    ASSERT_EQ(job.exit_code, 0) << version << job.out << job.err << cluster.Logs();
    ExpectSameContent(cluster, reference, version);
  }
  // What earlier leaders published is still there.
  const RunResult packs = cluster.Ask({"pack", "list"});
  EXPECT_THAT(packs.out, HasSubstr("matrix@1.0.0"));
  // A leader that is asked to end is succeeded at once.
  const std::string before = watcher.Address();
  Service& leader = watcher.Leader();
  leader.Send(SIGTERM);
  EXPECT_EQ(leader.Await(60s), 0);
  EXPECT_EQ(cluster.Ask({"job", "list", "--all"}).exit_code, 0);
  EXPECT_NE(watcher.Address(), before);
}

TEST(HaTest, ALeaderThatSleepsBeyondItsLeaseIsAStandbyWhenItWakes) {
  testing::Etcd etcd;
  Cluster cluster({.stores = 1, .workers = 2, .verifiers = 1, .etcd = etcd.endpoints()});
  const Watcher watcher(etcd, cluster);
  const std::string reference = Reference(cluster, "2");
  const std::string first = watcher.Address();
  Service& sleeper = watcher.Leader();
  RunResult job;
  std::jthread waits([&] { job = Submit(cluster, "2", "1.0.0"); });
  std::this_thread::sleep_for(500ms);
  sleeper.Send(SIGSTOP);
  Service& second = watcher.Leader(first);
  const std::string second_address = watcher.Address();
  // It wakes in the middle of what its successor does.
  sleeper.Send(SIGCONT);
  waits.join();
  ASSERT_EQ(job.exit_code, 0) << job.out << job.err << cluster.Logs();
  ExpectSameContent(cluster, reference, "1.0.0");
  EXPECT_TRUE(sleeper.IsRunning());
  EXPECT_EQ(watcher.Address(), second_address);
  // Now it says who leads instead.
  const RunResult refused = cluster.Tenon({"job", "list", "--server", first});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err, HasSubstr(second_address));
  // And it is ready to lead again.
  second.Kill();
  watcher.Leader(second_address);
  EXPECT_EQ(watcher.Address(), first);
  EXPECT_EQ(Submit(cluster, "1", "1.0.1").exit_code, 0) << cluster.Logs();
}

TEST(HaTest, EtcdLosesItsLeader) {
  testing::Etcd etcd(3);
  Cluster cluster({.stores = 1,
                   .workers = 2,
                   .verifiers = 1,
                   .of_coordinator = {"--etcd-lease-ttl", "20"},
                   .etcd = etcd.endpoints()});
  const Watcher watcher(etcd, cluster);
  const std::string reference = Reference(cluster, "2");
  const std::string leader = watcher.Leader().name();
  RunResult job;
  std::jthread waits([&] { job = Submit(cluster, "2", "1.0.0"); });
  std::this_thread::sleep_for(500ms);
  etcd.Kill(etcd.Leader());
  waits.join();
  ASSERT_EQ(job.exit_code, 0) << job.out << job.err << cluster.Logs();
  ExpectSameContent(cluster, reference, "1.0.0");
  EXPECT_EQ(watcher.Leader().name(), leader);
}

}  // namespace
}  // namespace tenon::e2e
