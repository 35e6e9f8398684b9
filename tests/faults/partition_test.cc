// Two machines, as network namespaces, and the link between them goes down for longer than a lease.
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include <gtest/gtest.h>

#include "tests/e2e/storm.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
using e2e::Service;
using std::chrono::steady_clock;
using testing::Run;
using testing::RunResult;

// "here" has 10.77.N.1 and "there" 10.77.N.2, where N is of this process.
class TwoMachines {
 public:
  TwoMachines() {
    const std::string id = std::to_string(getpid());
    here_ = "tenon-here-" + id;
    there_ = "tenon-there-" + id;
    wire_ = "th" + id;
    const std::string other = "tt" + id;
    made_ = Ip({"netns", "add", here_}) && Ip({"netns", "add", there_}) &&
            Ip({"link", "add", wire_, "type", "veth", "peer", "name", other}) &&
            Ip({"link", "set", wire_, "netns", here_}) &&
            Ip({"link", "set", other, "netns", there_}) &&
            Ip({"-n", here_, "addr", "add", "10.77.1.1/24", "dev", wire_}) &&
            Ip({"-n", there_, "addr", "add", "10.77.1.2/24", "dev", other}) &&
            Ip({"-n", here_, "link", "set", "lo", "up"}) &&
            Ip({"-n", there_, "link", "set", "lo", "up"}) && SetLink(true) &&
            Ip({"-n", there_, "link", "set", other, "up"});
  }
  ~TwoMachines() {
    Ip({"netns", "del", here_});  // And what is in it.
    Ip({"netns", "del", there_});
    Ip({"link", "del", wire_});
  }
  TwoMachines(const TwoMachines&) = delete;
  TwoMachines& operator=(const TwoMachines&) = delete;

  bool made() const { return made_; }
  bool SetLink(bool up) { return Ip({"-n", here_, "link", "set", wire_, up ? "up" : "down"}); }
  std::vector<std::string> Command(bool here) const {
    return {"ip", "netns", "exec", here ? here_ : there_};
  }

 private:
  static bool Ip(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "ip");
    return Run(arguments).exit_code == 0;
  }
  std::string here_, there_, wire_;
  bool made_ = false;
};

class PartitionTest : public ::testing::Test {
 protected:
  Service& Start(bool here, const std::string& name, std::vector<std::string> arguments) {
    services_.push_back(std::make_unique<Service>(name, std::move(arguments), folder_ / name,
                                                  folder_ / (name + ".home")));
    services_.back()->command() = machines_.Command(here);
    services_.back()->Start();
    return *services_.back();
  }
  // A user beside the coordinator.
  RunResult Tenon(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = machines_.Command(true);
    words.push_back(testing::Binary("tenon"));
    words.insert(words.end(), arguments.begin(), arguments.end());
    const std::string home = folder_ / "user";
    return testing::Run(words, {.environment = {{"HOME", home},
                                                {"XDG_CONFIG_HOME", home + "/config"},
                                                {"XDG_CACHE_HOME", home + "/cache"},
                                                {"TENON_TOKEN", ""},
                                                {"TENON_SERVER", "10.77.1.1:7400"}},
                                .limit = 600s});
  }
  std::string Submit(const std::string& version) {
    const RunResult r = Tenon({"job", "submit", "--universe", "matrix", "--max-operators", "2",
                               "--shards", "12", "--name", "matrix@" + version});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.out.substr(0, r.out.find('\n'));
  }
  nlohmann::json Show(const std::string& job) {
    return nlohmann::json::parse(Tenon({"job", "show", job, "--json", "-"}).out, nullptr, false);
  }
  std::string Logs() {
    std::string text;
    for (const auto& s : services_) text += s->name() + "\n" + testing::ReadFile(s->log() + ".err");
    return text;
  }
  void ExpectSame(const std::string& version) {
    const std::string pulled = folder_ / (version + ".pack");
    ASSERT_EQ(Tenon({"pack", "pull", "matrix@" + version, "-o", pulled}).exit_code, 0);
    const RunResult diff = Tenon({"pack", "diff", "--content", folder_ / "reference.pack", pulled});
    EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
  }
  void Coordinator() {
    Start(true, "coordinator",
          {"coordinator", "--listen", "10.77.1.1:7400", "--data", folder_ / "data",
           "--lease-ttl-ms", "2000"})
        .Port();
    const RunResult made = Tenon({"generate", "--universe", "matrix", "--max-operators", "2",
                                  "--out", folder_ / "reference.pack", "--name", "matrix@0.0.1"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  Service& Store(bool here) {
    const std::string address = here ? "10.77.1.1:7401" : "10.77.1.2:7401";
    return Start(here, "store",
                 {"store", "--listen", address, "--advertise", address, "--data",
                  folder_ / "store.data", "--coordinator", "10.77.1.1:7400"});
  }
  Service& Node(bool here, const std::string& role) {
    return Start(here, role + (here ? "-here" : "-there"),
                 {role, "--coordinator", "10.77.1.1:7400", "--slots", "1"});
  }

  testing::TempFolder folder_;
  TwoMachines machines_;
  std::vector<std::unique_ptr<Service>> services_;
};

#define SKIP_UNLESS_MADE()                                                                       \
  if (!machines_.made()) {                                                                       \
    GTEST_SKIP() << "**** NOT TESTED: a partition needs root and network namespaces (ip netns)"; \
  }

// The store and all nodes are beyond the link: nothing goes on until it is back.
TEST_F(PartitionTest, WhatIsCutOffGoesOnWhereItWas) {
  SKIP_UNLESS_MADE();
  Coordinator();
  Store(false);
  Node(false, "worker");
  Node(false, "verifier");
  const std::string job = Submit("1.0.0");
  for (int n = 0; n < 2; ++n) {
    ASSERT_TRUE(machines_.SetLink(false));
    std::this_thread::sleep_for(6s);  // Three leases.
    ASSERT_TRUE(machines_.SetLink(true));
    std::this_thread::sleep_for(1s);
  }
  const RunResult watch = Tenon({"job", "watch", job});
  EXPECT_EQ(watch.exit_code, 0) << watch.out << watch.err << Logs();
  ExpectSame("1.0.0");
  for (const auto& service : services_) EXPECT_TRUE(service->IsRunning()) << service->name();
}

// A worker and a verifier beyond the link lose their tasks to those on this side; what they report
// when the link is back does no harm.
TEST_F(PartitionTest, OthersTakeTheTasksOfThoseWhoAreCutOff) {
  SKIP_UNLESS_MADE();
  Coordinator();
  Store(true);
  Service& far_worker = Node(false, "worker");
  Service& far_verifier = Node(false, "verifier");
  const std::string first = Submit("1.0.0");
  const auto end = steady_clock::now() + 60s;
  while (Show(first).value("shards_leased", 0) == 0 && Show(first).value("shards_done", 0) == 0) {
    ASSERT_LT(steady_clock::now(), end) << Logs();
    std::this_thread::sleep_for(20ms);
  }
  ASSERT_TRUE(machines_.SetLink(false));
  Node(true, "worker");
  Node(true, "verifier");
  const RunResult watch = Tenon({"job", "watch", first});
  EXPECT_EQ(watch.exit_code, 0) << watch.out << watch.err << Logs();
  ExpectSame("1.0.0");
  ASSERT_TRUE(machines_.SetLink(true));
  // The far side works again: this side is ended, and the next job is done.
  for (const auto& service : services_) {
    if (service->name().ends_with("-here")) service->Kill();
  }
  const RunResult again = Tenon({"job", "watch", Submit("1.0.1")});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err << Logs();
  ExpectSame("1.0.1");
  EXPECT_TRUE(far_worker.IsRunning());
  EXPECT_TRUE(far_verifier.IsRunning());
}

}  // namespace
}  // namespace tenon::faults
