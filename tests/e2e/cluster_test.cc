// The distributed service, as real processes: the same pack as one machine makes, whatever is
// killed meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/cluster.h"
#include "tests/e2e/storm.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::RunResult;

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

TEST(ClusterTest, AWorkerThatSleepsBeyondItsLeaseDoesNoHarm) {
  Cluster cluster({.stores = 1, .workers = 2, .verifiers = 1});
  const std::string reference = Reference(cluster, "2");
  // It is stopped before it can finish anything, the lease of 3 s runs out, and its late result
  // comes when the shard is long done, or the job.
  Service& sleeper = *cluster.services()[2];
  ASSERT_EQ(sleeper.name(), "worker0");
  sleeper.Send(SIGSTOP);
  const RunResult first = Submit(cluster, "2", "1.0.0");
  EXPECT_EQ(first.exit_code, 0) << first.out << first.err << cluster.Logs();
  sleeper.Send(SIGCONT);
  const RunResult second = Submit(cluster, "2", "1.0.1");
  EXPECT_EQ(second.exit_code, 0) << second.out << second.err << cluster.Logs();
  ExpectSameContent(cluster, reference, "1.0.0");
  ExpectSameContent(cluster, reference, "1.0.1");
  EXPECT_TRUE(sleeper.IsRunning());
}

TEST(ClusterTest, JobsArePausedResumedAndCancelled) {
  Cluster cluster({.stores = 1, .workers = 0, .verifiers = 0});  // Nobody works.
  const auto submit = [&](const std::string& version) {
    const RunResult r = cluster.Ask({"job", "submit", "--universe", "matrix", "--max-operators",
                                     "1", "--name", "m@" + version});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.out.substr(0, r.out.find('\n'));
  };
  const std::string id = submit("1.0.0");
  EXPECT_THAT(cluster.Ask({"job", "pause", id}).out, HasSubstr("(paused)"));
  EXPECT_THAT(cluster.Ask({"job", "list"}).out, HasSubstr("paused"));
  EXPECT_THAT(cluster.Ask({"job", "resume", id}).out, ::testing::Not(HasSubstr("(paused)")));
  EXPECT_EQ(cluster.Ask({"job", "priority", id, "7"}).exit_code, 0);
  EXPECT_EQ(json::parse(cluster.Ask({"job", "show", id, "--json", "-"}).out)["priority"], 7);
  EXPECT_THAT(cluster.Ask({"job", "cancel", id}).out, HasSubstr("cancelled"));
  // Who watches a cancelled job is told that there is no pack.
  EXPECT_EQ(cluster.Ask({"job", "watch", id}).exit_code, 1);
  EXPECT_EQ(cluster.Ask({"job", "pause", id}).exit_code, 1);  // It has ended.
  EXPECT_EQ(cluster.Ask({"job", "show", "none"}).exit_code, 3);
}

TEST(ClusterTest, StoresAreLookedAtCheckedAndCopied) {
  Cluster cluster({.stores = 1, .workers = 1, .verifiers = 1});
  ASSERT_EQ(Submit(cluster, "1", "1.0.0").exit_code, 0) << cluster.Logs();
  const std::string store = "127.0.0.1:" + std::to_string(cluster.services()[1]->Port());
  const auto ask = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "store");
    arguments.insert(arguments.end(), {"--server", store, "--json", "-"});
    const RunResult r = cluster.Tenon(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return json::parse(r.out, nullptr, false);
  };
  EXPECT_EQ(ask({"stats"})["accepts_writes"], true);
  EXPECT_GE(ask({"verify"})["values"], 0);
  EXPECT_TRUE(ask({"compact"}).contains("families"));
  const std::string copy = ask({"checkpoint", "monday"})["directory"];
  EXPECT_THAT(copy, HasSubstr("monday"));
  EXPECT_FALSE(testing::Run({"ls", copy}).out.empty());
}

TEST(ClusterTest, AnUnreachableServiceIsExitCodeFour) {
  testing::TempFolder folder;
  const RunResult r = testing::Tenon({"job", "list", "--server", "127.0.0.1:1"});
  EXPECT_EQ(r.exit_code, 4) << r.err;
}

// What a GET of a page or of the metrics answers, by curl.
std::string Get(int port, const std::string& path) {
  return testing::Run({"curl", "--silent", "--show-error", "--max-time", "20", "--include",
                       "http://127.0.0.1:" + std::to_string(port) + path})
      .out;
}

TEST(ServeAllTest, NeedsNoSetUpAndCanBeWatched) {
  testing::TempFolder folder;
  Service all("all",
              {"all", "--listen", "127.0.0.1:0", "--slots", "1", "--metrics-listen", "127.0.0.1:0",
               "--log-format", "json"},
              folder / "all", folder / "home");
  all.Start();
  const int metrics = all.Port("metrics");
  const std::string server = "127.0.0.1:" + std::to_string(all.Port("coordinator"));
  const RunResult job = testing::Tenon({"job", "submit", "--universe", "matrix", "--max-operators",
                                        "2", "--name", "m@1.0.0", "--wait", "--server", server});
  ASSERT_EQ(job.exit_code, 0) << job.out << job.err << testing::ReadFile(all.log() + ".err");

  const std::string text = Get(metrics, "/metrics");
  for (const char* line :
       {"tenon_jobs{state=\"done\"} 1", "tenon_graphs_total 1158", "tenon_nodes{role=\"store\"} 1",
        "tenon_verdicts_total{repeatable=\"true\",verdict=\"proved\"} ",
        "tenon_proof_seconds_count ",
        "tenon_rpc_seconds_count{code=\"OK\",method=\"tenon.v1.JobService/SubmitJob\"} 1"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(Get(metrics, "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(Get(metrics, "/"), HasSubstr("m@1.0.0"));
  EXPECT_THAT(Get(metrics, "/jobs/" + job.out.substr(0, job.out.find('\n'))), HasSubstr("1,158"));
  const std::string pack = Get(metrics, "/packs/m@1.0.0");
  EXPECT_THAT(pack, HasSubstr("<svg"));
  EXPECT_THAT(pack, ::testing::Not(HasSubstr("<script")));
  EXPECT_THAT(Get(metrics, "/jobs/none"), HasSubstr("404"));
  EXPECT_THAT(Get(metrics, "/..%2f..%2fetc/passwd"), ::testing::Not(HasSubstr("200 OK")));

  all.Send(SIGTERM);
  EXPECT_EQ(all.Await(30s), 0);
  // Each line of its log is a JSON document with the name of an event.
  std::istringstream lines(testing::ReadFile(all.log() + ".err"));
  std::string line;
  int events = 0;
  for (; std::getline(lines, line); ++events) {
    const json document = json::parse(line, nullptr, false);
    ASSERT_FALSE(document.is_discarded()) << line;
    EXPECT_TRUE(document.contains("event")) << line;
  }
  EXPECT_GT(events, 5);
}

TEST(ServeTest, AConfigFileIsReadAndFlagsWin) {
  testing::TempFolder folder;
  const std::string config = folder.Write("tenon.conf",
                                          "# a coordinator\nlisten = 1.2.3.4:99999  # not here\n"
                                          "data = " +
                                              (folder / "data") + "\n");
  Service service("coordinator", {"coordinator", "--config", config, "--listen", "127.0.0.1:0"},
                  folder / "log", folder / "home");
  service.Start();
  EXPECT_GT(service.Port(), 0);
  EXPECT_THAT(folder.Names(), ::testing::Contains("data"));
  const std::string bad = folder.Write("bad.conf", "listen 127.0.0.1:0\n");
  const RunResult r = testing::Tenon({"serve", "coordinator", "--config", bad});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_THAT(r.err, HasSubstr("bad.conf:1"));
}

TEST(ClusterTest, AStormOfKillsChangesNothing) {
  Storm({.operators = "2", .blows = 20, .pause = 400ms});
}

}  // namespace
}  // namespace tenon::e2e
