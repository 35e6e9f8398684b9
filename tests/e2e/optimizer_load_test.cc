// An optimizer node that is used all day, in miniature: sixteen callers at once, some of whom are
// killed or have no time. Every result is that of a local run, no call fails, and what the node
// holds stays the same.
//
// $TENON_SOAK_MINUTES says how long (25 seconds unless given, as in ./dev test), $TENON_STORM_SEED
// what happens.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/e2e/optimized.h"
#include "tests/e2e/optimizer_node.h"
#include "tests/e2e/vitals.h"
#include "tests/support/process_figures.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::ReadFile;
using testing::RunResult;

constexpr int kCallers = 16;
// Of the node itself, whose children come and go: the line through its memory may rise by so much.
constexpr double kGrowthMib = 16, kShortGrowthMib = 48;
constexpr double kMoreThreads = 8, kMoreFiles = 24;

struct Case {
  std::string model, search;
  std::string result;  // What a local run makes of it.
};

class Load {
 public:
  Load(double minutes, unsigned seed) : minutes_(minutes), seed_(seed) {
    matrix_ = MakePack(folder_, "matrix", 2, "1.0.0");
    long_model_ = LongModel(folder_);
    for (const char* name : {"qkv", "lora_w512", "conv_bn", "two_avgpools", "resnet_block"}) {
      for (const char* search : {"backtrack", "eqsat"}) {
        Case c{Zoo(folder_, name, "small"), search, ""};
        const std::string out = folder_ / "local.onnx";
        const RunResult r =
            testing::Tenon({"optimize", c.model, "-o", out, "--pack", matrix_, "--search", search});
        EXPECT_EQ(r.exit_code, 0) << r.err;
        c.result = r.exit_code == 0 ? ReadFile(out) : "";
        cases_.push_back(std::move(c));
      }
    }
    node_ = std::make_unique<OptimizerNode>(std::vector<std::string>{
        "--pack", matrix_, "--slots", "2", "--per-caller", "64", "--cache-limit", "1MiB"});
  }

  void Run() {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double, std::ratio<60>>(minutes_));
    std::vector<std::thread> callers;
    for (int k = 0; k < kCallers; ++k) callers.emplace_back([&, k] { Caller(k, end); });
    while (Clock::now() < end) {
      Sample();
      std::this_thread::sleep_for(1s);
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_TRUE(node_->AwaitIdle());
    Report();
    EXPECT_TRUE(std::filesystem::is_empty(node_->folder() / "data/optimizer/work"));
    EXPECT_EQ(node_->Metric("tenon_optimize_seconds_count", "failed"), 0);
    EXPECT_EQ(node_->Metric("tenon_optimize_seconds_count", "invalid"), 0);
    EXPECT_EQ(node_->Metric("tenon_optimize_seconds_count", "refused"), 0);
    EXPECT_EQ(node_->Metric("tenon_optimize_children_died_total"), 0);
    EXPECT_LE(node_->Metric("tenon_optimize_cache_bytes"), 1 << 20);
    EXPECT_GT(counts_["right"], kSanitized ? 0 : kCallers);
    EXPECT_EQ(counts_["wrong"], 0);
  }

 private:
  void Count(const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++counts_[what];
  }

  void Caller(int number, Clock::time_point end) {
    std::mt19937 random(seed_ * 1000 + unsigned(number));
    const std::string out = folder_ / ("out" + std::to_string(number) + ".onnx");
    while (Clock::now() < end && !::testing::Test::HasFailure()) {
      const auto draw = random() % 100;
      if (draw < 3) {  // Killed after a second.
        std::vector<std::string> flags = kLongSearch;
        const RunResult r = node_->Optimize(long_model_, out, flags, {.limit = 1s});
        EXPECT_TRUE(r.timed_out) << r.err;
        Count("killed");
      } else if (draw < 6) {  // In a hurry: a result, or none, but no other error.
        std::vector<std::string> flags = kLongSearch;
        flags.insert(flags.end(), {"--deadline", Seconds(2)});
        const RunResult r = node_->Optimize(long_model_, out, flags);
        EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 4) << r.exit_code << r.err;
        Count(r.exit_code == 0 ? "cut" : "late");
      } else {
        const Case& c = cases_[random() % cases_.size()];
        // The seed changes no result, but most often makes it another question.
        const RunResult r = node_->Optimize(
            c.model, out, {"--search", c.search, "--seed", std::to_string(random() % 200)});
        EXPECT_EQ(r.exit_code, 0) << r.err;
        const bool right = r.exit_code == 0 && ReadFile(out) == c.result;
        EXPECT_TRUE(right) << c.model << " by " << c.search;
        Count(right ? "right" : "wrong");
      }
    }
  }

  void Sample() {
    const testing::ProcessFigures f = testing::FiguresOf(node_->service().pid());
    samples_["MiB"].push_back(double(f.rss_bytes) / (1 << 20));
    samples_["threads"].push_back(f.threads);
    samples_["files"].push_back(f.files);
    samples_["children"].push_back(double(node_->Children().size()));
  }

  void Report() {
    std::printf("load:");
    for (const auto& [what, count] : counts_) std::printf(" %d %s", count, what.c_str());
    std::printf("; cache hits %g, misses %g; %g MB in, %g MB out\n",
                node_->Metric("tenon_optimize_cache_lookups_total", "hit"),
                node_->Metric("tenon_optimize_cache_lookups_total", "miss"),
                node_->Metric("tenon_optimize_bytes_total", "in") / 1e6,
                node_->Metric("tenon_optimize_bytes_total", "out") / 1e6);
    std::printf("%-10s%10s%10s%10s%10s\n", "of", "mean", "growth", "before", "after");
    for (const auto& [what, values] : samples_) {
      const Trend t = TrendOf(values);
      std::printf("%-10s%10.1f%10.2f%10.1f%10.1f\n", what.c_str(), t.mean, t.growth, t.before,
                  t.after);
      if (what == "MiB") {
        EXPECT_LE(t.growth, minutes_ < 5 ? kShortGrowthMib : kGrowthMib) << "memory grows";
      } else if (what == "children") {
        EXPECT_LE(t.before, 2) << "more models at once than there are slots";
      } else {
        EXPECT_LE(t.after, t.before + (what == "threads" ? kMoreThreads : kMoreFiles)) << what;
      }
    }
  }

  const double minutes_;
  const unsigned seed_;
  testing::TempFolder folder_;
  std::string matrix_, long_model_;
  std::vector<Case> cases_;
  std::unique_ptr<OptimizerNode> node_;
  std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::vector<double>> samples_;
};

double Number(const char* variable, double otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr && *given != '\0' ? std::atof(given) : otherwise;
}

TEST(OptimizerLoadTest, ManyCallersGetWhatLocalRunsGiveAndNothingGrows) {
  const double minutes = Number("TENON_SOAK_MINUTES", 25.0 / 60);
  const unsigned seed = unsigned(Number("TENON_STORM_SEED", 1));
  ASSERT_GT(minutes, 0) << "TENON_SOAK_MINUTES is no number of minutes";
  std::printf("load: %d callers, %g minutes, seed %u\n", kCallers, minutes, seed);
  Load(minutes, seed).Run();
}

}  // namespace
}  // namespace tenon::e2e
