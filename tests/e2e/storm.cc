#include "tests/e2e/storm.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>
#include <vector>

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

namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One after another, until the storm is over.
class Jobs {
 public:
  Jobs(const Cluster& cluster, const StormOptions& options, std::string reference, int minor)
      : cluster_(cluster), options_(options), reference_(std::move(reference)), minor_(minor) {}

  void Run(const std::atomic<bool>& over) {
    for (int n = 0; !over && !::testing::Test::HasFailure(); ++n) {
      const std::string version = "1." + std::to_string(minor_) + "." + std::to_string(n);
      const Clock::time_point start = Clock::now();
      const testing::RunResult job = Submit(cluster_, options_.operators, version);
      std::printf("  matrix@%s: %.1f s\n", version.c_str(), Since(start));
      ASSERT_EQ(job.exit_code, 0) << version << ": " << job.out << job.err << cluster_.Logs();
      ExpectSameContent(cluster_, reference_, version);
    }
  }

 private:
  const Cluster& cluster_;
  const StormOptions& options_;
  const std::string reference_;
  const int minor_;
};

// What happens to one service; returns its name.
std::string Strike(Service& victim, bool mixed, std::mt19937& random) {
  const unsigned fate = mixed ? random() % 4 : 0;
  if (fate == 2) {
    victim.Send(SIGSTOP);
    std::this_thread::sleep_for(1s + std::chrono::milliseconds(random() % 5000));
    victim.Send(SIGCONT);
    return "SIGSTOP";
  }
  if (fate == 3) {
    victim.Send(SIGTERM);
    EXPECT_EQ(victim.Await(120s), 0) << victim.name();
    victim.Kill();
    victim.Start();
    return "SIGTERM";
  }
  victim.Kill();
  victim.Start();
  return "kill -9";
}

}  // namespace

void Storm(const StormOptions& options) {
  const char* given = std::getenv("TENON_STORM_SEED");
  const unsigned seed = given != nullptr ? unsigned(std::atoi(given)) : 1;
  std::printf("storm: seed %u\n", seed);
  std::mt19937 random(seed);
  const Clock::time_point start = Clock::now();
  Cluster cluster;
  const std::string reference = Reference(cluster, options.operators);
  std::printf("  cluster and reference: %.1f s\n", Since(start));
  std::atomic<bool> over{false};
  std::atomic<int> running{0};
  std::vector<std::jthread> users;
  for (int minor = 0; minor < (options.mixed ? 2 : 1); ++minor) {
    ++running;
    users.emplace_back([&, minor] {
      Jobs(cluster, options, reference, minor).Run(over);
      --running;
    });
  }
  std::map<std::string, int> roles, blows;
  const Clock::time_point begin = Clock::now();
  for (int total = 0; running > 0 && (total < options.blows || Clock::now() < begin + options.time);
       ++total) {
    std::this_thread::sleep_for(options.pause / 2 + options.pause * int(random() % 1000) / 1000);
    Service& victim = *cluster.services()[random() % cluster.services().size()];
    // Nothing dies by itself.
    if (!victim.IsRunning()) {
      ADD_FAILURE() << victim.name() << " has ended by itself\n" << cluster.Logs();
      break;
    }
    ++blows[Strike(victim, options.mixed, random)];
    ++roles[victim.name().substr(0, victim.name().size() - 1)];
  }
  std::printf("  %.1f s of storm\n", Since(begin));
  over = true;
  users.clear();  // Joins.
  for (const auto& [what, count] : blows) std::printf("  %s: %d\n", what.c_str(), count);
  for (const auto& [role, count] : roles) std::printf("  %s: %d blows\n", role.c_str(), count);
  EXPECT_EQ(roles.size(), 4u);  // All roles were hit.
}

}  // namespace tenon::e2e
