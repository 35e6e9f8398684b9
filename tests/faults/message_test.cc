// A network that loses, doubles, delays and reorders messages and breaks streams, between all
// services and the user: the pack is the one that one machine makes.
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/e2e/storm.h"
#include "tests/support/proxy.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
using e2e::Service;
using testing::Proxy;
using testing::ProxyCounts;
using testing::RunResult;

unsigned Seed() {
  const char* given = std::getenv("TENON_FAULT_SEED");
  const unsigned seed = given != nullptr ? unsigned(std::atoi(given)) : 1;
  std::printf("seed %u\n", seed);
  return seed;
}

// A coordinator, two stores, two workers and two verifiers, each of which reaches the others only
// through a proxy.
class BadNetwork {
 public:
  BadNetwork(unsigned seed, const testing::ProxyFaults& faults) {
    to_coordinator_ = std::make_unique<Proxy>(seed, faults);
    Service& coordinator =
        Start("coordinator", {"--listen", "127.0.0.1:0", "--data", folder_ / "coordinator",
                              "--min-stores", "2", "--lease-ttl-ms", "3000"});
    to_coordinator_->ForwardTo("127.0.0.1:" + std::to_string(coordinator.Port()));
    for (const char* name : {"store-a", "store-b"}) {
      to_stores_.push_back(std::make_unique<Proxy>(++seed, faults));
      Service& store = Start(
          "store", {"--listen", "127.0.0.1:0", "--data", folder_ / name, "--advertise",
                    to_stores_.back()->endpoint(), "--coordinator", server(), "--node-id", name});
      to_stores_.back()->ForwardTo("127.0.0.1:" + std::to_string(store.Port()));
    }
    for (int k = 0; k < 2; ++k) {
      for (const char* role : {"worker", "verifier"}) {
        Start(role, {"--coordinator", server(), "--slots", "1"});
      }
    }
  }
  std::string server() const { return to_coordinator_->endpoint(); }
  const testing::TempFolder& folder() const { return folder_; }

  RunResult Tenon(std::vector<std::string> arguments) const {
    const std::string home = folder_ / "user";
    return testing::Tenon(std::move(arguments),
                          {.environment = {{"HOME", home},
                                           {"XDG_CONFIG_HOME", home + "/config"},
                                           {"XDG_CACHE_HOME", home + "/cache"},
                                           {"TENON_TOKEN", ""},
                                           {"TENON_SERVER", server()}},
                           .limit = 600s});
  }
  // All proxies together.
  ProxyCounts counts() const {
    ProxyCounts sum = to_coordinator_->counts();
    for (const auto& proxy : to_stores_) {
      const ProxyCounts one = proxy->counts();
      sum.passed += one.passed;
      sum.lost += one.lost;
      sum.answers_lost += one.answers_lost;
      sum.repeated += one.repeated;
      sum.delayed += one.delayed;
      sum.cut += one.cut;
    }
    return sum;
  }
  void ExpectAllRun() {
    for (const auto& service : services_) {
      EXPECT_TRUE(service->IsRunning())
          << service->name() << ": " << testing::ReadFile(service->log() + ".err");
    }
  }

 private:
  Service& Start(const std::string& role, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), role);
    const std::string name = role + std::to_string(services_.size());
    services_.push_back(
        std::make_unique<Service>(name, arguments, folder_ / name, folder_ / (name + ".home")));
    services_.back()->Start();
    return *services_.back();
  }

  testing::TempFolder folder_;
  std::unique_ptr<Proxy> to_coordinator_;
  std::vector<std::unique_ptr<Proxy>> to_stores_;
  std::vector<std::unique_ptr<Service>> services_;  // They end first.
};

TEST(MessageTest, LostDoubledDelayedAndReorderedMessagesChangeNothing) {
  BadNetwork network(
      Seed(),
      {.lose = 60, .lose_answer = 60, .repeat = 100, .delay = 150, .cut = 40, .delay_max = 200ms});
  const std::string reference = network.folder() / "reference.pack";
  const RunResult made = network.Tenon({"generate", "--universe", "matrix", "--max-operators", "2",
                                        "--out", reference, "--name", "matrix@0.0.1"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  // Jobs, until all that may happen to a message has happened often.
  constexpr int kOften = 8;
  ProxyCounts c;
  for (int n = 0; n < 20; ++n) {
    const std::string version = "1.0." + std::to_string(n);
    const RunResult job =
        network.Tenon({"job", "submit", "--universe", "matrix", "--max-operators", "2", "--shards",
                       "9", "--name", "matrix@" + version, "--wait"});
    ASSERT_EQ(job.exit_code, 0) << job.out << job.err;
    const std::string pulled = network.folder() / (version + ".pack");
    const RunResult pull = network.Tenon({"pack", "pull", "matrix@" + version, "-o", pulled});
    ASSERT_EQ(pull.exit_code, 0) << pull.err;
    const RunResult diff = network.Tenon({"pack", "diff", "--content", reference, pulled});
    EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
    c = network.counts();
    if (std::min({c.lost, c.answers_lost, c.repeated, c.delayed, c.cut}) >= kOften) break;
  }
  std::printf("%d passed, %d lost, %d answers lost, %d doubled, %d late, %d streams cut\n",
              c.passed, c.lost, c.answers_lost, c.repeated, c.delayed, c.cut);
  EXPECT_GE(std::min({c.lost, c.answers_lost, c.repeated, c.delayed, c.cut}), kOften);
  network.ExpectAllRun();
  // One submission is one job, and one publication one pack, however often they came.
  const RunResult push = network.Tenon({"pack", "push", reference});
  EXPECT_EQ(push.exit_code, 0) << push.err;
  const std::string listed = network.Tenon({"pack", "list", "--server", network.server()}).out;
  EXPECT_NE(listed.find("matrix@0.0.1"), std::string::npos) << listed;
  const std::string jobs = network.Tenon({"job", "list", "--all"}).out;
  EXPECT_EQ(jobs.find("failed"), std::string::npos) << jobs;
}

}  // namespace
}  // namespace tenon::faults
