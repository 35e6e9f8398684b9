#include "tests/e2e/storm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

namespace tenon::e2e {

using namespace std::chrono_literals;

// What one machine makes of the matrix universe.
std::string Reference(const Cluster& cluster, const std::string& operators) {
  std::string path = cluster.folder() / "reference.pack";
  const testing::RunResult r = cluster.Tenon({"generate", "--universe", "matrix", "--max-operators",
                                              operators, "--out", path, "--name", "matrix@0.0.1"},
                                             600s);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return path;
}

// Fetches what a job has published and compares its content, byte for byte.
void ExpectSameContent(const Cluster& cluster, const std::string& reference,
                       const std::string& version) {
  const std::string pulled = cluster.folder() / (version + ".pack");
  const testing::RunResult pull = cluster.Ask({"pack", "pull", "matrix@" + version, "-o", pulled});
  ASSERT_EQ(pull.exit_code, 0) << pull.err;
  const testing::RunResult diff = cluster.Tenon({"pack", "diff", "--content", reference, pulled});
  EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
  EXPECT_EQ(cluster.Tenon({"pack", "verify", pulled}).exit_code, 0);
}

testing::RunResult Submit(const Cluster& cluster, const std::string& operators,
                          const std::string& version) {
  return cluster.Ask({"job", "submit", "--universe", "matrix", "--max-operators", operators,
                      "--shards", "7", "--name", "matrix@" + version, "--wait"},
                     900s);
}

void Storm(const StormOptions& options) {
  const char* given = std::getenv("TENON_STORM_SEED");
  const unsigned seed = given != nullptr ? unsigned(std::atoi(given)) : 1;
  std::printf("storm: seed %u\n", seed);
  std::mt19937 random(seed);
  Cluster cluster;
  const std::string reference = Reference(cluster, options.operators);
  std::map<std::string, int> killed;
  int total = 0;
  for (int n = 0; total < options.kills; ++n) {
    const std::string version = "1.0." + std::to_string(n);
    std::atomic<bool> ended{false};
    testing::RunResult job;
    std::thread waits([&] {
      job = Submit(cluster, options.operators, version);
      ended = true;
    });
    while (!ended) {
      std::this_thread::sleep_for(options.pause / 2 + options.pause * int(random() % 1000) / 1000);
      if (ended || total >= options.kills) continue;
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

}  // namespace tenon::e2e
