// Every named kill point (core/base/kill_point.h): a process of a cluster dies there, is started
// again, and the pack is the one that one machine makes. A kill point that is not listed here is a
// failure, too.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "client/registry/pack_file.h"
#include "coordinator/registry/shelf.h"
#include "store/store.h"
#include "tests/e2e/storm.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
using e2e::Cluster;
using e2e::Service;

struct Case {
  std::string point;
  std::string victim;
  int visit;  // The one that kills, of the process that is started before the job.
};

// A coordinator's first write is that of its start, before it listens.
const Case kCases[] = {
    {"store.write.before", "coordinator", 2},  {"store.write.after", "coordinator", 2},
    {"store.write.before", "coordinator", 7},  {"store.write.after", "coordinator", 9},
    {"store.write.before", "store", 2},        {"store.write.after", "store", 3},
    {"store.acknowledge.before", "store", 1},  {"coordinator.round", "coordinator", 1},
    {"coordinator.publish", "coordinator", 1}, {"coordinator.published", "coordinator", 1},
    {"node.report.before", "worker", 2},       {"node.report.after", "worker", 3},
    {"node.report.before", "verifier", 1},     {"node.report.after", "verifier", 1}};

class KillPointTest : public ::testing::TestWithParam<Case> {};

// What a dead coordinator has published: nothing, or packs that are whole.
std::size_t WholePacks(const std::string& data) {
  const auto store = store::Store::Open(data, {.create = false});
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return 0;
  board::StoreJournal journal(**store);
  const coordinator::PackShelf shelf(journal);
  const auto entries = shelf.List("");
  EXPECT_TRUE(entries.ok()) << entries.status();
  for (const coordinator::ShelfEntry& entry : *entries) {
    const auto file = shelf.Read(entry);
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file.ok() && registry::DecodePackFile(*file).ok());
  }
  return entries->size();
}

TEST_P(KillPointTest, ThePackIsTheSame) {
  const Case& c = GetParam();
  Cluster cluster({.stores = 1, .workers = 1, .verifiers = 1});
  const std::string reference = e2e::Reference(cluster, "2");
  Service* victim = nullptr;
  for (const auto& service : cluster.services()) {
    if (service->name() == c.victim + "0") victim = service.get();
  }
  ASSERT_NE(victim, nullptr);
  victim->Kill();
  victim->environment() = {{"TENON_KILL_POINT", c.point + ":" + std::to_string(c.visit)}};
  victim->Start();

  testing::RunResult job;
  std::atomic<bool> ended{false};
  std::jthread waits([&] {
    job = e2e::Submit(cluster, "2", "1.0.0");
    ended = true;
  });
  while (!ended && victim->IsRunning()) std::this_thread::sleep_for(10ms);
  ASSERT_FALSE(victim->IsRunning())
      << "the job has come to its end without visiting " << c.point << "\n"
      << job.out << job.err << cluster.Logs();
  EXPECT_EQ(victim->Await(0s), -2);  // By the signal.
  if (c.point.starts_with("coordinator.publish")) {
    EXPECT_EQ(WholePacks(cluster.folder() / "coordinator.data/coordinator"),
              c.point == "coordinator.published" ? 1u : 0u);
  }
  victim->environment().clear();
  victim->Start();
  waits.join();
  ASSERT_EQ(job.exit_code, 0) << job.out << job.err << cluster.Logs();
  e2e::ExpectSameContent(cluster, reference, "1.0.0");
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  std::string name =
      info.param.victim + "_" + info.param.point + "_" + std::to_string(info.param.visit);
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(EachPoint, KillPointTest, ::testing::ValuesIn(kCases), NameOf);

TEST(KillPointListTest, EveryKillPointOfTheProgramIsDiedAt) {
  const std::regex use(R"re(TENON_KILL_POINT\("([^"]+)"\))re");
  std::set<std::string> there, tried;
  for (const char* room :
       {"client", "coordinator", "core", "optimizer", "proto", "store", "verifier", "worker"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(TENON_SOURCE_DIR) / room)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cc" && extension != ".h") continue;
      const std::string text = testing::ReadFile(entry.path().string());
      for (std::sregex_iterator at(text.begin(), text.end(), use), end; at != end; ++at) {
        there.insert((*at)[1]);
      }
    }
  }
  for (const Case& c : kCases) tried.insert(c.point);
  // Those of the journal in etcd have a test of their own.
  const std::string etcd =
      testing::ReadFile(std::string(TENON_SOURCE_DIR) + "/tests/coordinator/etcd/etcd_test.cc");
  const std::regex death(R"re(kill_at\("(etcd[^":]*))re");
  for (std::sregex_iterator at(etcd.begin(), etcd.end(), death), end; at != end; ++at) {
    tried.insert((*at)[1]);
  }
  EXPECT_GE(there.size(), 8u);
  EXPECT_EQ(there, tried);
}

}  // namespace
}  // namespace tenon::faults
