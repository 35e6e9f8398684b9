// Several coordinators with one etcd: one leads, another one takes over, and the packs are those
// that one machine makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "tests/e2e/leaders.h"
#include "tests/e2e/storm.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::RunResult;

TEST(HaTest, AStandbyTakesOverWhenTheLeaderIsKilled) { KillLeaders("2", 2); }

TEST(HaTest, ALeaderThatSleepsBeyondItsLeaseIsAStandbyWhenItWakes) {
  testing::Etcd etcd;
  // Whoever listens on a port of its own can say so.
  const std::vector<std::string> own_port{"--advertise", "127.0.0.1:0"};
  Cluster cluster({.stores = 1,
                   .workers = 2,
                   .verifiers = 1,
                   .of_coordinator = own_port,
                   .of_stores = own_port,
                   .etcd = etcd.endpoints()});
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
  // A standby ends when it is asked to, and nobody notices.
  second.Start();
  second.Port("coordinator");
  second.Send(SIGTERM);
  EXPECT_EQ(second.Await(60s), 0);
  EXPECT_EQ(watcher.Address(), first);
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
