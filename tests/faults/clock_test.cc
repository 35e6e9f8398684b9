// Wall clocks jump by hours, forward and back, as when somebody sets them: work goes on, leases end
// when they should, and tokens follow the clock.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "tests/e2e/storm.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
using e2e::Cluster;
using e2e::Service;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using testing::RunResult;

// The clocks of a cluster's processes.
class Clocks {
 public:
  // Restarts the services with clocks that can jump.
  explicit Clocks(Cluster& cluster) {
    for (const auto& service : cluster.services()) {
      service->Kill();
      Set(*service, 0h);
      service->environment() = {{"LD_PRELOAD", CLOCK_JUMP}, {"TENON_CLOCK_FILE", FileOf(*service)}};
      service->Start();
      if (service->name().starts_with("coordinator") || service->name().starts_with("store")) {
        service->Port();
      }
    }
  }
  // By so much the clock of a service is off from now on.
  void Set(const Service& service, std::chrono::hours off) {
    const int file = ::open(FileOf(service).c_str(), O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0);
    const std::int64_t ns = std::chrono::nanoseconds(off).count();
    CHECK(::pwrite(file, &ns, sizeof(ns), 0) == sizeof(ns));
    ::close(file);
  }

 private:
  std::string FileOf(const Service& service) const { return folder_ / service.name(); }
  testing::TempFolder folder_;
};

nlohmann::json Show(const Cluster& cluster, const std::string& job) {
  return nlohmann::json::parse(cluster.Ask({"job", "show", job, "--json", "-"}).out, nullptr,
                               false);
}

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TEST(ClockTest, JobsGoOnWhateverClocksSay) {
  Cluster cluster({.stores = 1, .workers = 2, .verifiers = 1});
  const std::string reference = e2e::Reference(cluster, "2");
  Clocks clocks(cluster);
  std::mt19937 random(1);
  int jumps = 0;
  for (const char* version : {"1.0.0", "1.0.1", "1.0.2"}) {
    testing::RunResult job;
    std::atomic<bool> ended{false};
    std::jthread waits([&] {
      job = e2e::Submit(cluster, "2", version);
      ended = true;
    });
    while (!ended) {
      const auto& service = cluster.services()[random() % cluster.services().size()];
      clocks.Set(*service, std::chrono::hours(int(random() % 97) - 48));
      ++jumps;
      std::this_thread::sleep_for(50ms);
    }
    waits.join();
    ASSERT_EQ(job.exit_code, 0) << job.out << job.err << cluster.Logs();
    e2e::ExpectSameContent(cluster, reference, version);
  }
  EXPECT_GE(jumps, 10);
  for (const auto& service : cluster.services()) EXPECT_TRUE(service->IsRunning());
}

TEST(ClockTest, LeasesEndAlthoughTheClockWentBack) {
  for (const auto jump : {-30h, 30h}) {
    Cluster cluster({.stores = 1, .workers = 2, .verifiers = 1});
    const std::string reference = e2e::Reference(cluster, "2");
    Clocks clocks(cluster);
    Service& stopped = *cluster.services()[2];
    Service& other = *cluster.services()[3];
    ASSERT_EQ(other.name(), "worker1");
    other.Kill();
    const RunResult submitted =
        cluster.Ask({"job", "submit", "--universe", "matrix", "--max-operators", "2", "--shards",
                     "7", "--name", "matrix@1.0.0"});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string job = submitted.out.substr(0, submitted.out.find('\n'));
    const auto end = steady_clock::now() + 60s;
    while (Show(cluster, job).value("shards_leased", 0) == 0 &&
           Show(cluster, job).value("shards_done", 0) == 0) {
      ASSERT_LT(steady_clock::now(), end) << cluster.Logs();
    }
    stopped.Send(SIGSTOP);
    clocks.Set(cluster.coordinator(), jump);
    clocks.Set(other, jump);
    other.Start();
    const RunResult watch = cluster.Ask({"job", "watch", job}, 100s);
    EXPECT_EQ(watch.exit_code, 0) << watch.out << watch.err << cluster.Logs();
    e2e::ExpectSameContent(cluster, reference, "1.0.0");
    // The clock did jump.
    const RunResult late =
        cluster.Ask({"job", "submit", "--universe", "matrix", "--name", "matrix@1.0.1"});
    ASSERT_EQ(late.exit_code, 0) << late.err;
    const std::int64_t at =
        Show(cluster, late.out.substr(0, late.out.find('\n'))).value("submitted_at_ms", 0LL);
    const auto hours = (at - NowMs()) / 3'600'000;
    EXPECT_GE(std::abs(hours), 29) << at;
    EXPECT_EQ(hours < 0, jump < 0h);
  }
}

TEST(ClockTest, TokensExpireByTheClock) {
  testing::TempFolder folder;
  const auto create = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"token",  "create", "--token-file", folder / "tokens",
                                       "--name", name,     "--role",       "read"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult r = testing::Tenon(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return folder.Write(name, r.out);
  };
  const std::string day = create("day", {"--days", "1"});
  const std::string ever = create("ever", {});
  e2e::ClusterOptions options{.stores = 0, .workers = 0, .verifiers = 0};
  options.of_coordinator = {"--token-file", folder / "tokens"};
  Cluster cluster(options);
  Clocks clocks(cluster);
  const auto ask = [&](const std::string& token) {
    return cluster.Ask({"job", "list", "--token", token});
  };
  for (int n = 0; n < 2; ++n) {
    clocks.Set(cluster.coordinator(), 23h);
    EXPECT_EQ(ask(day).exit_code, 0);
    clocks.Set(cluster.coordinator(), 25h);
    const RunResult late = ask(day);
    EXPECT_EQ(late.exit_code, 4);
    EXPECT_THAT(late.err, HasSubstr("expired"));
    EXPECT_EQ(ask(ever).exit_code, 0);
    clocks.Set(cluster.coordinator(), -1000h);
    EXPECT_EQ(ask(day).exit_code, 0);
  }
}

}  // namespace
}  // namespace tenon::faults
