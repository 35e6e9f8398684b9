// A cluster that is used all day, in miniature: jobs come and are paused, cancelled and finished,
// nodes join and leave, watches are dropped, packs are pulled. Whatever the roles hold must stay
// the same: memory, threads, descriptors, leases, nodes, tables in stores, temporary files.
//
// $TENON_SOAK_MINUTES says how long (half a minute unless given, as in ./dev test),
// $TENON_STORM_SEED what happens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/e2e/cluster.h"
#include "tests/e2e/storm.h"
#include "tests/e2e/vitals.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using nlohmann::json;
using testing::RunResult;

constexpr int kKeptJobs = 20;

// What the figures of a role may do between the end of the warm-up and the last sample. Memory: the
// line through the samples may rise by so much. A coordinator's and a store's write buffers and
// table caches come and go by megabytes; in 15 minutes there are some hundred jobs, so that what
// stays of each job shows from some ten kilobytes on.
constexpr double kGrowthMib = 16;
constexpr double kGrowthShare = 0.1;
// In the first minute everything still grows.
constexpr double kShortGrowthMib = 64;
// Pools of threads and files of a store breathe; what leaks does not come back below what it was.
constexpr double kMoreThreads = 4, kMoreFiles = 16, kMoreConnections = 4;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  return out;
}

class Soak {
 public:
  Soak(double minutes, unsigned seed)
      : time_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double, std::ratio<60>>(minutes))),
        short_(minutes < 5),
        random_(seed),
        cluster_({.stores = 2,
                  .workers = 2,
                  .verifiers = 1,
                  .of_coordinator = {"--keep-jobs", std::to_string(kKeptJobs), "--metrics-listen",
                                     "127.0.0.1:0"}}),
        metrics_port_(cluster_.coordinator().Port("metrics")),
        reference_(Reference(cluster_, "2")) {}

  void Run() {
    const auto end = Clock::now() + time_;
    for (turns_ = 0; Clock::now() < end && !::testing::Test::HasFailure(); ++turns_) {
      Turn();
      Quiesce();
      Sample();
    }
    if (::testing::Test::HasFailure()) {
      std::printf("%s", cluster_.Logs().c_str());
      return;
    }
    Report();
    ExpectNothingIsLeft();
  }

 private:
  bool Coin() { return random_() % 2 == 0; }

  std::string SubmitOnly(const std::string& operators, const std::string& version) {
    const RunResult r = cluster_.Ask({"job", "submit", "--universe", "matrix", "--max-operators",
                                      operators, "--shards", "3", "--name", "matrix@" + version});
    EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
    ++jobs_;
    return r.out.substr(0, r.out.find('\n'));
  }

  void Turn() {
    const std::string n = std::to_string(turns_);
    // Guests, who help for one turn.
    Service worker("guest_worker", {"worker", "--coordinator", cluster_.server(), "--slots", "1"},
                   cluster_.folder() / "guest_worker", cluster_.folder() / "guest_worker.home");
    Service verifier(
        "guest_verifier", {"verifier", "--coordinator", cluster_.server(), "--slots", "1"},
        cluster_.folder() / "guest_verifier", cluster_.folder() / "guest_verifier.home");
    worker.Start();
    verifier.Start();

    const std::string kept = SubmitOnly("2", "1.0." + n);
    // Watches that end before their job does: the program is killed after a second.
    RunResult dropped, followed;
    std::thread drops([&] { dropped = cluster_.Ask({"job", "watch", kept}, 1s); });
    std::thread follows([&] { followed = cluster_.Ask({"job", "watch", kept}, 600s); });

    // One that is cancelled in the middle, and one that has a hard life.
    const std::string gone = SubmitOnly("3", "2.0." + n);
    const std::string tossed = SubmitOnly("1", "3.0." + n);
    if (Coin()) cluster_.Ask({"job", "priority", gone, "9"});
    EXPECT_EQ(cluster_.Ask({"job", "cancel", gone}).exit_code, 0);
    // It may be done before that is said: then the answer is no.
    cluster_.Ask({"job", "pause", tossed});
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 500));
    cluster_.Ask({"job", "resume", tossed});
    if (Coin()) cluster_.Ask({"job", "cancel", tossed});

    // One guest leaves as it should, the other is gone.
    (Coin() ? verifier : worker).Kill();
    for (Service* guest : {&worker, &verifier}) {
      if (!guest->IsRunning()) continue;
      guest->Send(SIGTERM);
      EXPECT_EQ(guest->Await(100s), 0) << guest->name();
    }

    drops.join();
    follows.join();
    EXPECT_EQ(followed.exit_code, 0) << followed.out << followed.err;
    EXPECT_TRUE(dropped.exit_code == 0 || dropped.timed_out) << dropped.err;
    // How `tossed` ends is its own affair, but it ends.
    EXPECT_THAT(cluster_.Ask({"job", "watch", tossed}, 600s).exit_code, ::testing::AnyOf(0, 1));
    ExpectSameContent(cluster_, reference_, "1.0." + n);
  }

  // The value of a metric of the coordinator, over all labels.
  double Metric(const std::string& name) const {
    const std::string text =
        testing::Run({"curl", "--silent", "--show-error", "--fail", "--max-time", "30",
                      "http://127.0.0.1:" + std::to_string(metrics_port_) + "/metrics"})
            .out;
    double sum = 0;
    bool found = false;
    for (const std::string& line : Lines(text)) {
      if (!line.starts_with(name) || (line[name.size()] != ' ' && line[name.size()] != '{')) {
        continue;
      }
      sum += std::stod(line.substr(line.rfind(' ')));
      found = true;
    }
    EXPECT_TRUE(found) << "no metric " << name << " in:\n" << text;
    return sum;
  }

  // What each store holds once the tables of ended jobs are gone: a mark for each of them.
  std::size_t ValuesOf(Service& store) {
    return AskStore(store, "verify")["values"].get<std::size_t>();
  }
  json AskStore(Service& store, const std::string& action) const {
    const std::string address = "127.0.0.1:" + std::to_string(store.Port());
    const RunResult r = cluster_.Tenon({"store", action, "--server", address, "--json", "-"});
    EXPECT_EQ(r.exit_code, 0) << store.name() << ": " << action << ": " << r.err;
    return json::parse(r.exit_code == 0 ? r.out : R"({"values": 0})");
  }

  template <class F>
  bool Eventually(const F& holds) {
    const auto end = Clock::now() + 100s;
    while (!holds()) {
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(100ms);
    }
    return true;
  }

  // Nobody works: all jobs have ended. The stores write out what they hold in memory, which would
  // grow to some hundred megabytes before they did so by themselves: what remains is what leaks.
  void Quiesce() {
    EXPECT_TRUE(Eventually([&] { return Metric("tenon_leases") == 0; }));
    EXPECT_EQ(Metric("tenon_open_tasks"), 0);
    for (const auto& service : cluster_.services()) {
      if (service->name().starts_with("store")) AskStore(*service, "compact");
    }
  }

  void Sample() {
    for (const auto& service : cluster_.services()) {
      ASSERT_TRUE(service->IsRunning()) << service->name() << " has ended by itself";
      const Vitals v = VitalsOf(service->pid());
      std::map<std::string, std::vector<double>>& of = samples_[service->name()];
      of["MiB"].push_back(v.rss_mib);
      of["threads"].push_back(v.threads);
      of["files"].push_back(v.files);
      of["connections"].push_back(v.connections);
      of["processes"].push_back(v.processes);
    }
  }

  void Report() {
    std::printf("soak: %d turns, %d jobs\n", turns_, jobs_);
    std::printf("%-14s%-13s%10s%10s%10s%10s\n", "role", "of", "mean", "growth", "before", "after");
    for (auto& [name, figures] : samples_) {
      for (auto& [what, values] : figures) {
        const Trend t = TrendOf(values);
        std::printf("%-14s%-13s%10.1f%10.2f%10.1f%10.1f\n", name.c_str(), what.c_str(), t.mean,
                    t.growth, t.before, t.after);
        if (what == "MiB") {
          const double limit = (short_ ? kShortGrowthMib : kGrowthMib) + kGrowthShare * t.mean;
          EXPECT_LE(t.growth, limit) << name << ": memory grows";
          continue;
        }
        const double more = what == "threads"       ? kMoreThreads
                            : what == "files"       ? kMoreFiles
                            : what == "connections" ? kMoreConnections
                                                    : 0;
        EXPECT_LE(t.after, t.before + more) << name << ": ever more " << what;
      }
    }
  }

  void ExpectNothingIsLeft() {
    EXPECT_LE(Metric("tenon_jobs"), kKeptJobs + 1);
    // Guests are forgotten some leases after they have gone, so of the last minutes some are there.
    EXPECT_TRUE(Eventually([&] { return Metric("tenon_nodes") <= 5; }));
    for (const auto& service : cluster_.services()) {
      if (!service->name().starts_with("store")) continue;
      std::size_t values = 0;
      EXPECT_TRUE(Eventually([&] { return (values = ValuesOf(*service)) <= std::size_t(jobs_); }))
          << service->name() << " holds " << values << " values after " << jobs_ << " jobs";
    }
    for (const auto& service : cluster_.services()) {
      for (const auto& entry : std::filesystem::directory_iterator(service->temporary())) {
        ADD_FAILURE() << service->name() << " has left " << entry.path();
      }
    }
  }

  const Clock::duration time_;
  const bool short_;
  std::mt19937 random_;
  Cluster cluster_;
  const int metrics_port_;
  const std::string reference_;
  int turns_ = 0, jobs_ = 0;
  // By role and by figure.
  std::map<std::string, std::map<std::string, std::vector<double>>> samples_;
};

double Number(const char* variable, double otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr && *given != '\0' ? std::atof(given) : otherwise;
}

TEST(SoakTest, NothingGrows) {
  const double minutes = Number("TENON_SOAK_MINUTES", 0.5);
  const unsigned seed = unsigned(Number("TENON_STORM_SEED", 1));
  ASSERT_GT(minutes, 0) << "TENON_SOAK_MINUTES is no number of minutes";
  std::printf("soak: %g minutes, seed %u\n", minutes, seed);
  Soak(minutes, seed).Run();
}

TEST(TrendTest, SeesALeakAndNoNoise) {
  std::vector<double> leak, noise;
  for (int k = 0; k < 300; ++k) {
    leak.push_back(50 + 0.1 * k);
    noise.push_back(50 + (k % 7));
  }
  EXPECT_NEAR(TrendOf(leak).growth, 20, 0.2);
  EXPECT_GT(TrendOf(leak).after, TrendOf(leak).before);
  EXPECT_NEAR(TrendOf(noise).growth, 0, 1);
  EXPECT_LE(TrendOf(noise).after, TrendOf(noise).before);
}

}  // namespace
}  // namespace tenon::e2e
