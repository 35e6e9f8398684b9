// The distributed service, as real processes: the same pack as one machine makes, whatever is
// killed meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/e2e/cluster.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::RunResult;

// What one machine makes of the matrix universe.
std::string Reference(const Cluster& cluster, const std::string& operators) {
  std::string path = cluster.folder() / "reference.pack";
  const RunResult r = cluster.Tenon({"generate", "--universe", "matrix", "--max-operators",
                                     operators, "--out", path, "--name", "matrix@0.0.1"},
                                    600s);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return path;
}

// Fetches what a job has published and compares its content, byte for byte.
void ExpectSameContent(const Cluster& cluster, const std::string& reference,
                       const std::string& version) {
  const std::string pulled = cluster.folder() / (version + ".pack");
  const RunResult pull = cluster.Ask({"pack", "pull", "matrix@" + version, "-o", pulled});
  ASSERT_EQ(pull.exit_code, 0) << pull.err;
  const RunResult diff = cluster.Tenon({"pack", "diff", "--content", reference, pulled});
  EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
  EXPECT_EQ(cluster.Tenon({"pack", "verify", pulled}).exit_code, 0);
}

RunResult Submit(const Cluster& cluster, const std::string& operators, const std::string& version) {
  return cluster.Ask({"job", "submit", "--universe", "matrix", "--max-operators", operators,
                      "--shards", "7", "--name", "matrix@" + version, "--wait"},
                     900s);
}

TEST(ClusterTest, MakesThePackThatOneMachineMakes) {
  Cluster cluster;
  const std::string reference = Reference(cluster, "2");
  const RunResult job = Submit(cluster, "2", "1.0.0");
  ASSERT_EQ(job.exit_code, 0) << job.out << job.err << cluster.Logs();
  ExpectSameContent(cluster, reference, "1.0.0");

  // Everything about it can be asked.
  const std::string id = job.out.substr(0, job.out.find('\n'));
  const RunResult show = cluster.Ask({"job", "show", id, "--json", "-"});
  ASSERT_EQ(show.exit_code, 0) << show.err;
  const json document = json::parse(show.out);
  EXPECT_EQ(document["state"], "done");
  EXPECT_EQ(document["pack"], "matrix@1.0.0");
  EXPECT_EQ(document["shards_done"], 7);
  EXPECT_THAT(cluster.Ask({"job", "list", "--all"}).out, HasSubstr(id));
  EXPECT_THAT(cluster.Ask({"pack", "list"}).out, HasSubstr("matrix@1.0.0"));
  // A version is published once.
  EXPECT_EQ(Submit(cluster, "2", "1.0.0").exit_code, 3);
  // All roles end cleanly when they are asked to.
  for (const auto& service : cluster.services()) service->Send(SIGTERM);
  for (const auto& service : cluster.services()) {
    EXPECT_EQ(service->Await(30s), 0) << service->name();
  }
}

TEST(ClusterTest, AnUnreachableServiceIsExitCodeFour) {
  testing::TempFolder folder;
  const RunResult r = testing::Tenon({"job", "list", "--server", "127.0.0.1:1"});
  EXPECT_EQ(r.exit_code, 4) << r.err;
}

// Kills services at random until `kills` are reached, while jobs run one after another.
void Storm(const std::string& operators, int kills, std::chrono::milliseconds pause) {
  const char* given = std::getenv("TENON_STORM_SEED");
  const unsigned seed = given != nullptr ? unsigned(std::atoi(given)) : 1;
  std::printf("storm: seed %u\n", seed);
  std::mt19937 random(seed);
  Cluster cluster;
  const std::string reference = Reference(cluster, operators);
  std::map<std::string, int> killed;
  int total = 0;
  for (int n = 0; total < kills; ++n) {
    const std::string version = "1.0." + std::to_string(n);
    std::atomic<bool> ended{false};
    RunResult job;
    std::thread waits([&] {
      job = Submit(cluster, operators, version);
      ended = true;
    });
    while (!ended) {
      std::this_thread::sleep_for(pause / 2 + pause * int(random() % 1000) / 1000);
      if (ended || total >= kills) continue;
      const auto& victim = cluster.services()[random() % cluster.services().size()];
      // Nothing dies by itself.
      if (!victim->IsRunning()) {
        ADD_FAILURE() << victim->name() << " has ended by itself\n" << cluster.Logs();
        victim->Start();
        continue;
      }
      victim->Kill();
      victim->Start();
      ++total;
      ++killed[victim->name().substr(0, victim->name().size() - 1)];
    }
    waits.join();
    ASSERT_EQ(job.exit_code, 0) << version << ", " << total << " kills: " << job.out << job.err
                                << cluster.Logs();
    ExpectSameContent(cluster, reference, version);
  }
  for (const auto& [role, count] : killed) std::printf("  %s: %d kills\n", role.c_str(), count);
  EXPECT_EQ(killed.size(), 4u);  // All roles were hit.
}

TEST(ClusterTest, AStormOfKillsChangesNothing) { Storm("2", 20, 400ms); }

TEST(ClusterLongTest, FiftyKillsOverAllRolesChangeNothing) { Storm("3", 50, 1500ms); }

}  // namespace
}  // namespace tenon::e2e
