#include "tests/e2e/leaders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "tests/e2e/storm.h"

namespace tenon::e2e {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using testing::RunResult;

Watcher::Watcher(const testing::Etcd& etcd, Cluster& cluster)
    : client_(*etcd::Client::Open({.endpoints = etcd.endpoints()})), cluster_(cluster) {}

std::string Watcher::Address() const {
  const auto leader = client_->Get("/tenon/leader", 30s);
  return leader.ok() && *leader ? (*leader)->value : "";
}
Service& Watcher::Leader(const std::string& not_this) const {
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

void KillLeaders(const std::string& operators, int wanted) {
  testing::Etcd etcd;
  Cluster cluster({.etcd = etcd.endpoints()});
  const Watcher watcher(etcd, cluster);
  const std::string reference = Reference(cluster, operators);
  const char* given = std::getenv("TENON_STORM_SEED");
  std::mt19937 random(given != nullptr ? unsigned(std::atoi(given)) : 1);
  int kills = 0;
  for (int n = 0; kills < wanted; ++n) {
    const std::string version = "1.0." + std::to_string(n);
    std::atomic<bool> ended{false};
    RunResult job;
    std::jthread waits([&] {
      job = Submit(cluster, operators, version);
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

}  // namespace tenon::e2e
