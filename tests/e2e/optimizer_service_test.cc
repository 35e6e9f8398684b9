// `tenon serve optimizer` and `tenon optimize --server`, with real processes: results are those of
// a local run, and whatever happens to one call happens to no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "tests/e2e/optimized.h"
#include "tests/e2e/optimizer_node.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::ReadFile;
using testing::RunResult;

class OptimizerServiceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = std::make_unique<testing::TempFolder>();
    matrix_ = MakePack(*shared_, "matrix", 2, "1.0.0");
    conv_ = MakePack(*shared_, "conv", 1, "1.0.0");
    long_model_ = LongModel(*shared_);
    model_ = Zoo(*shared_, "qkv", "small");
  }
  static void TearDownTestSuite() { shared_.reset(); }

  void Start(std::vector<std::string> flags) {
    for (const std::string& pack : {matrix_, conv_}) flags.insert(flags.end(), {"--pack", pack});
    node_.emplace(std::move(flags));
  }
  std::string Out(const std::string& name) const { return out_ / (name + ".onnx"); }
  // A call with a search that ends when it is told to.
  std::thread StartLong(const std::string& name, RunResult& result,
                        std::vector<std::string> more = {}) {
    more.insert(more.begin(), kLongSearch.begin(), kLongSearch.end());
    std::thread thread(
        [this, name, more, &result] { result = node_->Optimize(long_model_, Out(name), more); });
    EXPECT_TRUE(Eventually([&] { return node_->Metric("tenon_optimize_running") >= 1; }));
    return thread;
  }
  void EndChildren() {
    for (const pid_t child : node_->Children()) ::kill(child, SIGKILL);
  }

  static std::unique_ptr<testing::TempFolder> shared_;
  static std::string matrix_, conv_, model_, long_model_;
  testing::TempFolder out_;
  std::optional<OptimizerNode> node_;
};
std::unique_ptr<testing::TempFolder> OptimizerServiceTest::shared_;
std::string OptimizerServiceTest::matrix_, OptimizerServiceTest::conv_;
std::string OptimizerServiceTest::model_, OptimizerServiceTest::long_model_;

// What differs between two runs of the same thing.
json WithoutTimes(json report) {
  report.erase("seconds");
  report["exploration"].erase("seconds");
  report.erase("result");
  return report;
}

TEST_F(OptimizerServiceTest, ResultsAreThoseOfALocalRunByteForByte) {
  Start({});
  for (const std::string name : {"qkv", "lora_w512", "conv_bn", "two_avgpools", "resnet_block"}) {
    const std::string model = Zoo(*shared_, name, "small");
    for (const std::string search : {"backtrack", "eqsat"}) {
      const RunResult local =
          testing::Tenon({"optimize", model, "-o", Out("local"), "--pack", matrix_, "--pack", conv_,
                          "--search", search, "--report", out_ / "local.json"});
      ASSERT_EQ(local.exit_code, 0) << local.err;
      const RunResult remote = node_->Optimize(
          model, Out("remote"), {"--search", search, "--report", out_ / "remote.json"});
      ASSERT_EQ(remote.exit_code, 0) << remote.err;
      EXPECT_EQ(ReadFile(Out("local")), ReadFile(Out("remote"))) << name << " by " << search;
      EXPECT_EQ(WithoutTimes(json::parse(ReadFile(out_ / "local.json"))),
                WithoutTimes(json::parse(ReadFile(out_ / "remote.json"))));
      EXPECT_THAT(remote.out, HasSubstr("cost"));
    }
  }
  EXPECT_EQ(node_->Metric("tenon_optimize_seconds_count", "done"), 10);
  EXPECT_EQ(node_->Metric("tenon_optimize_children_died_total"), 0);
}

TEST_F(OptimizerServiceTest, WhatWasComputedIsNotComputedAgainAndOnlyForTheSameQuestion) {
  Start({});
  const auto ask = [&](std::vector<std::string> more, const std::string& outcome) {
    const double before = node_->Metric("tenon_optimize_seconds_count", outcome);
    more.insert(more.end(), {"--json", "-"});
    const RunResult r = node_->Optimize(model_, Out("o"), more);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(node_->Metric("tenon_optimize_seconds_count", outcome), before + 1);
    return json::parse(r.out);
  };
  const json first = ask({}, "done");
  const std::string bytes = ReadFile(Out("o"));
  EXPECT_EQ(ask({}, "cached"), first);
  EXPECT_EQ(ReadFile(Out("o")), bytes);
  ask({"--device", "roofline:weak"}, "done");
  ask({"--seed", "2"}, "done");
  ask({"--pack", "conv"}, "done");
  ask({"--pack", "conv@1.0.0", "--pack", "matrix"}, "done");  // Another order.
  ask({"--pack", "matrix", "--pack", "conv"}, "cached");      // That of the server.
  // After a restart, too; but what was damaged meanwhile is computed again.
  node_->service().Send(SIGTERM);
  ASSERT_EQ(node_->service().Await(60s), 0);
  const auto results = node_->folder() / "data/optimizer/results";
  std::vector<std::string> files;
  for (const auto& f : std::filesystem::directory_iterator(results)) files.push_back(f.path());
  EXPECT_EQ(files.size(), 5U);
  for (const std::string& file : files) std::filesystem::resize_file(file, 300);
  std::vector<std::string> again = node_->service().arguments();
  node_->service().Start();
  const std::string server = "127.0.0.1:" + std::to_string(node_->service().Port("optimizer"));
  const RunResult r = testing::Tenon({"optimize", model_, "-o", Out("o"), "--server", server});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(ReadFile(Out("o")), bytes);
}

TEST_F(OptimizerServiceTest, AModelWithItsDataInOtherFilesIsSentAsOne) {
  Start({});
  const RunResult made =
      testing::Run({kPython, TENON_SOURCE_DIR "/tests/models/zoo.py", "--out", out_.path(),
                    "--size", "small", "--weights", "shared", "--only", "qkv"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string model = Out("qkv");
  const auto is_data = [](const auto& file) { return file.path().extension() == ".bin"; };
  const std::filesystem::directory_iterator files(out_.path());
  ASSERT_TRUE(std::any_of(begin(files), end(files), is_data));
  const RunResult local = testing::Tenon(
      {"optimize", model, "-o", Out("local"), "--pack", matrix_, "--pack", conv_, "--json", "-"});
  ASSERT_EQ(local.exit_code, 0) << local.err;
  const RunResult r = node_->Optimize(model, Out("o"), {"--json", "-"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(json::parse(local.out)["cost_after_us"], json::parse(r.out)["cost_after_us"]);
  EXPECT_EQ(json::parse(local.out)["steps"], json::parse(r.out)["steps"]);
  // Alone, in another folder, it is a whole model.
  const testing::TempFolder alone;
  const std::string copy = alone.Write("o.onnx", ReadFile(Out("o")));
  const RunResult again = testing::Tenon({"optimize", copy, "-o", alone / "again.onnx"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  // Data that is not there is a clear error.
  for (const auto& f : std::filesystem::directory_iterator(out_.path())) {
    if (is_data(f)) std::filesystem::remove(f.path());
  }
  const RunResult gone = node_->Optimize(model, Out("gone"));
  EXPECT_EQ(gone.exit_code, 3);
  EXPECT_THAT(gone.err, HasSubstr("external data"));
}

TEST_F(OptimizerServiceTest, MeasuredCostsAreTheServersAndKept) {
  Start({"--slots", "1"});
  json first;
  for (const char* seed : {"1", "2"}) {
    const RunResult r =
        node_->Optimize(model_, Out("o"), {"--device", "cpu", "--seed", seed, "--json", "-"});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const json cost = json::parse(r.out)["cost_before_us"];
    if (first.is_null()) first = cost;
    EXPECT_EQ(cost, first);
  }
  EXPECT_TRUE(std::filesystem::exists(node_->folder() / "data/optimizer/costs"));
  EXPECT_EQ(node_->Optimize(model_, Out("o"), {"--cost-cache", out_ / "costs"}).exit_code, 3);
}

TEST_F(OptimizerServiceTest, TheDeadlineEndsTheSearchWithTheBestSoFar) {
  Start({});
  std::vector<std::string> flags = kLongSearch;
  flags.insert(flags.end(), {"--deadline", Seconds(16), "--json", "-"});
  const RunResult r = node_->Optimize(long_model_, Out("o"), flags);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json report = json::parse(r.out);
  EXPECT_EQ(report["exploration"]["end"], "time-limit");
  EXPECT_LE(report["cost_after_us"], report["cost_before_us"]);
  // What a deadline has cut is not kept for others.
  EXPECT_EQ(node_->Metric("tenon_optimize_cache_bytes"), 0);
}

TEST_F(OptimizerServiceTest, CallersThatAreKilledInterruptedOrLateFreeTheirWork) {
  Start({"--slots", "2"});
  for (const int signal : {SIGKILL, SIGINT, 0}) {
    std::vector<std::string> flags = kLongSearch;
    // Less time than starting a search takes; with more, the best so far is an answer.
    if (signal == 0) flags.insert(flags.end(), {"--deadline", "0.005"});
    const RunResult r =
        node_->Optimize(long_model_, Out("o"), flags, {.signal = signal, .signal_after = "search"});
    EXPECT_EQ(r.signal, signal) << r.err;
    if (signal == 0) {
      EXPECT_EQ(r.exit_code, 4) << r.err;
    }
    EXPECT_TRUE(node_->AwaitIdle()) << signal;
    EXPECT_FALSE(std::filesystem::exists(Out("o")));
  }
  // Who has no time at all may not even have got there.
  EXPECT_TRUE(
      Eventually([&] { return node_->Metric("tenon_optimize_seconds_count", "cancelled") >= 2; }));
  EXPECT_EQ(node_->Optimize(model_, Out("o")).exit_code, 0);
}

TEST_F(OptimizerServiceTest, AChildThatDiesIsAnErrorOfItsCallOnly) {
  Start({"--slots", "2"});
  RunResult killed;
  std::thread thread = StartLong("killed", killed);
  ASSERT_TRUE(Eventually([&] { return !node_->Children().empty(); }));
  EXPECT_EQ(node_->Optimize(model_, Out("other")).exit_code, 0);
  EndChildren();
  thread.join();
  EXPECT_EQ(killed.exit_code, 5);
  EXPECT_THAT(killed.err, HasSubstr("signal 9"));
  EXPECT_FALSE(std::filesystem::exists(Out("killed")));
  EXPECT_EQ(node_->Metric("tenon_optimize_children_died_total"), 1);
  EXPECT_EQ(node_->Optimize(model_, Out("after"), {"--seed", "7"}).exit_code, 0);
  EXPECT_TRUE(node_->AwaitIdle());
}

TEST_F(OptimizerServiceTest, ThoseWhoAreTooManyWaitOrAreTurnedAway) {
  Start({"--slots", "1", "--queue", "1"});
  RunResult running, waiting;
  std::thread first = StartLong("running", running, {"--deadline", Seconds(60)});
  std::thread second([&] { waiting = node_->Optimize(model_, Out("waiting")); });
  ASSERT_TRUE(Eventually([&] { return node_->Metric("tenon_optimize_waiting") == 1; }));
  const RunResult third = node_->Optimize(model_, Out("o"), {"--deadline", Seconds(4)});
  EXPECT_EQ(third.exit_code, 3);
  EXPECT_THAT(third.err, HasSubstr("as many as there may be"));
  EXPECT_GE(node_->Metric("tenon_optimize_seconds_count", "refused"), 1);
  EndChildren();
  first.join();
  second.join();
  EXPECT_EQ(waiting.exit_code, 0) << waiting.err;
  EXPECT_TRUE(node_->AwaitIdle());
}

TEST_F(OptimizerServiceTest, EachTokenHasItsShareAndWithoutOneNothingIsDone) {
  const std::string tokens = out_ / "tokens";
  for (const std::string who : {"ada", "bob"}) {
    const RunResult r = testing::Tenon(
        {"token", "create", "--token-file", tokens, "--name", who, "--role", "read"});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    out_.Write(who, r.out);
  }
  out_.Write("eve", "tenon_0123456789\n");
  Start({"--slots", "2", "--per-caller", "1", "--token-file", tokens});
  RunResult running;
  std::thread thread = StartLong("running", running, {"--token", out_ / "ada"});
  const RunResult second =
      node_->Optimize(model_, Out("o"), {"--token", out_ / "ada", "--deadline", Seconds(4)});
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_THAT(second.err, HasSubstr("'ada'"));
  EXPECT_EQ(node_->Optimize(model_, Out("o"), {"--token", out_ / "bob"}).exit_code, 0);
  EXPECT_EQ(node_->Optimize(model_, Out("o")).exit_code, 4);
  EXPECT_EQ(node_->Optimize(model_, Out("o"), {"--token", out_ / "eve"}).exit_code, 4);
  EndChildren();
  thread.join();
}

TEST_F(OptimizerServiceTest, WhatIsNoModelOrTooLargeOrNotThereIsRefused) {
  Start({"--model-limit", "100kB", "--max-time-limit", "100"});
  const std::string nonsense = out_.Write("nonsense.onnx", "not a model");
  EXPECT_EQ(node_->Optimize(nonsense, Out("o")).exit_code, 3);
  EXPECT_EQ(node_->Optimize(out_ / "none.onnx", Out("o")).exit_code, 3);
  const RunResult large = node_->Optimize(long_model_, Out("o"));
  EXPECT_EQ(large.exit_code, 3);
  EXPECT_THAT(large.err, HasSubstr("--model-limit"));
  const RunResult pack = node_->Optimize(model_, Out("o"), {"--pack", "nn"});
  EXPECT_EQ(pack.exit_code, 3);
  EXPECT_THAT(pack.err, HasSubstr("does not use the pack nn"));
  EXPECT_THAT(node_->Optimize(model_, Out("o"), {"--pack", matrix_}).err,
              HasSubstr("packs of its"));
  const RunResult device = node_->Optimize(model_, Out("o"), {"--device", "roofline:./mine"});
  EXPECT_EQ(device.exit_code, 3);
  EXPECT_THAT(device.err, HasSubstr("not a path"));
  EXPECT_EQ(node_->Optimize(model_, Out("o"), {"--device", "roofline:none"}).exit_code, 3);
  EXPECT_EQ(
      node_->Optimize(model_, Out("o"), {"--search", "eqsat", "--time-limit", "101"}).exit_code, 3);
  const RunResult differs = node_->Optimize(model_, Out("o"), {"--tolerance", "1e-30"});
  EXPECT_THAT(differs.exit_code, ::testing::AnyOf(0, 1)) << differs.err;
  EXPECT_TRUE(node_->AwaitIdle());
  EXPECT_EQ(node_->Metric("tenon_optimize_children_died_total"), 0);
  EXPECT_EQ(node_->Optimize(model_, Out("o")).exit_code, 0);
}

TEST_F(OptimizerServiceTest, AModelThatNeedsTooMuchMemoryEndsAlone) {
  if (kSanitized) GTEST_SKIP() << "an address space of a sanitizer has no limit";
  Start({"--memory-limit", "500MiB"});
  const std::string model = Zoo(*shared_, "lora_x512", "full");
  const RunResult r = node_->Optimize(model, Out("o"));
  EXPECT_EQ(r.exit_code, 3) << r.out << r.err;
  EXPECT_THAT(r.err, HasSubstr("more memory"));
  EXPECT_EQ(node_->Optimize(model_, Out("o")).exit_code, 0);
}

TEST_F(OptimizerServiceTest, SigtermLetsRunningModelsEndAndTakesNoOthers) {
  Start({"--slots", "1"});
  RunResult running, waiting;
  std::thread first = StartLong("running", running, {"--time-limit", "8"});
  std::thread second([&] {
    waiting = node_->Optimize(model_, Out("waiting"), {"--deadline", Seconds(10)});
  });
  ASSERT_TRUE(Eventually([&] { return node_->Metric("tenon_optimize_waiting") == 1; }));
  node_->service().Send(SIGTERM);
  EXPECT_EQ(node_->service().Await(100s), 0);
  first.join();
  second.join();
  EXPECT_EQ(running.exit_code, 0) << running.err;
  EXPECT_EQ(waiting.exit_code, 4) << waiting.err;  // Nobody else was there.
}

TEST_F(OptimizerServiceTest, IfOneServerIsGoneTheNextOneIsAsked) {
  Start({});
  const RunResult r = testing::Tenon({"optimize", model_, "-o", Out("o"), "--deadline", Seconds(9),
                                      "--server", "127.0.0.1:1," + node_->server()});
  EXPECT_EQ(r.exit_code, 0) << r.err;
}

TEST_F(OptimizerServiceTest, TwoNodesDoNotShareAFolder) {
  Start({});
  Service other("other",
                {"optimizer", "--listen", "127.0.0.1:0", "--data", node_->folder() / "data"},
                out_ / "other", out_ / "home");
  other.Start();
  EXPECT_EQ(other.Await(60s), 1);
  EXPECT_THAT(ReadFile(out_ / "other.err"), HasSubstr("another process"));
}

TEST_F(OptimizerServiceTest, APackThatIsNotThereOrNotGoodStopsTheStart) {
  const std::string bad = out_.Write("bad.pack", "no pack");
  for (const std::string& pack : {std::string("nothing"), bad}) {
    Service node("node",
                 {"optimizer", "--listen", "127.0.0.1:0", "--data", out_ / "d", "--pack", pack},
                 out_ / "node", out_ / "home");
    node.Start();
    EXPECT_EQ(node.Await(60s), 3) << pack;
    EXPECT_THAT(ReadFile(out_ / "node.err"), HasSubstr(pack));
  }
}

// With a registry: `tenon serve all` has an optimizer, and so has a node of its own.
TEST_F(OptimizerServiceTest, PacksComeFromARegistryAndABadOneReplacesNothing) {
  Cluster cluster({.stores = 0, .workers = 0, .verifiers = 0});
  const auto push = [&](const std::string& pack) {
    const RunResult r = cluster.Ask({"pack", "push", pack, "--channel", "stable"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
  };
  node_.emplace(std::vector<std::string>{"--coordinator", cluster.server(), "--pack",
                                         "matrix@stable", "--refresh", "1"});
  EXPECT_EQ(node_->Metric("tenon_packs_missing"), 1);
  const RunResult early = node_->Optimize(model_, Out("o"), {"--deadline", Seconds(4)});
  EXPECT_EQ(early.exit_code, 4) << early.err;
  EXPECT_THAT(early.err, HasSubstr("has not come yet"));
  const std::string newer = MakePack(*shared_, "matrix", 2, "1.1.0");
  push(matrix_);
  ASSERT_TRUE(Eventually([&] { return node_->Metric("tenon_packs_served") == 1; }));
  const auto optimize = [&] {
    const RunResult r = node_->Optimize(model_, Out("o"), {"--json", "-"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const json report = json::parse(r.exit_code == 0 ? r.out : "{}");
    std::string packs;
    for (const json& step : report.value("steps", json::array())) {
      if (step["pack"] != "") packs = step["pack"];
    }
    return packs;
  };
  EXPECT_EQ(optimize(), "matrix@1.0.0");
  push(newer);
  EXPECT_TRUE(Eventually([&] { return optimize() == "matrix@1.1.0"; }));
  push(matrix_);  // The channel goes back: by mistake or by an attacker, who knows.
  EXPECT_TRUE(Eventually([&] { return node_->Metric("tenon_packs_stale") == 1; }));
  EXPECT_EQ(optimize(), "matrix@1.1.0");
  push(newer);
  EXPECT_TRUE(Eventually([&] { return node_->Metric("tenon_packs_stale") == 0; }));
  cluster.coordinator().Kill();
  EXPECT_EQ(optimize(), "matrix@1.1.0");
}

TEST_F(OptimizerServiceTest, ServeAllHasOneWhenItIsAskedFor) {
  Service all("all",
              {"all", "--listen", "127.0.0.1:0", "--optimizer-listen", "127.0.0.1:0", "--data",
               out_ / "data", "--pack", matrix_},
              out_ / "all", out_ / "home");
  all.Start();
  const std::string server = "127.0.0.1:" + std::to_string(all.Port("optimizer"));
  const RunResult r = testing::Tenon({"optimize", model_, "-o", Out("o"), "--server", server});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  all.Send(SIGTERM);
  EXPECT_EQ(all.Await(60s), 0);
}

}  // namespace
}  // namespace tenon::e2e
