// Extraction alone: what each e-graph costs at the end, the bound that is proved, and the CPU time.
// A result that is worse than what is known is an error, not a number, and ends in exit code 1.
//
// The e-graphs of real networks that TENSAT made are read from the folder that the environment
// variable TENON_EGRAPHS names (files of extraction-gym, egraph-serialize's JSON, .json.gz); they
// are not part of the repository. `./dev bench extraction FOLDER` sets it.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>

#include "core/base/check.h"
#include "optimizer/extract/extract.h"
#include "optimizer/extract/instance.h"
#include "optimizer/extract/reduce.h"
#include "tests/optimizer/egraphs.h"

namespace tenon::optimizer::extract {
namespace {

// Of CPU time for a proof; the deadline leaves room for other programs on the machine.
constexpr double kCpuSeconds = 120;
constexpr std::chrono::seconds kDeadline(400);

bool g_worse = false;  // Some result was an error.

struct Expected {
  double cost = -1;      // Known: no more, and no less, which would be a mistake. -1: unknown.
  bool optimal = false;  // It is to be proved.
};

void Worse(benchmark::State& state, const char* why) {
  g_worse = true;
  state.SkipWithError(why);
}

void Run(benchmark::State& state, const Problem& problem, const Expected& expected) {
  Result result;
  const std::clock_t start = std::clock();
  for (auto _ : state) {
    Options options;
    options.limits.deadline = std::chrono::steady_clock::now() + kDeadline;
    if (std::getenv("TENON_EGRAPHS_VERBOSE") != nullptr) {
      options.progress = [&](const Progress& p) {
        std::fprintf(stderr, "%8.2f s  %-24s cost %.6f  bound %.6f\n",
                     double(std::clock() - start) / CLOCKS_PER_SEC,
                     std::string(Name(p.stage)).c_str(), p.cost, p.lower_bound);
      };
    }
    auto extracted = Extract(problem, options);
    CHECK(extracted.ok());
    result = *std::move(extracted);
  }
  const double cpu_seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  // Most cycles are ones that no choice without cycles could use: what is left counts.
  Instance reduced(problem);
  Reduce(reduced, std::numeric_limits<double>::infinity());
  Problem rest{.num_classes = problem.num_classes, .nodes = {}, .roots = problem.roots};
  for (NodeId n = 0; n < reduced.num_nodes(); ++n) {
    if (reduced.alive(n)) rest.nodes.push_back(problem.nodes[std::size_t(n)]);
  }
  const Cycles cycles = CountCycles(rest);
  state.counters["classes"] = problem.num_classes;
  state.counters["nodes"] = double(problem.nodes.size());
  state.counters["in_cycles"] = cycles.classes;
  state.counters["largest"] = cycles.largest;
  state.counters["cost"] = result.cost;
  state.counters["bound"] = result.lower_bound;
  state.counters["gap_%"] = 100 * result.Gap();
  state.SetLabel(std::string(Name(result.verdict)) + ", found by " +
                 std::string(Name(result.found_by)));
  if (result.verdict == Verdict::kInfeasible) Worse(state, "infeasible");
  if (expected.optimal && (result.verdict != Verdict::kOptimal || cpu_seconds > kCpuSeconds)) {
    Worse(state, "not proved optimal in time");
  }
  if (expected.cost >= 0 && std::abs(result.cost - expected.cost) > 1e-6) {
    Worse(state, "not the cost that is known");
  }
}

void Network(benchmark::State& state, const char* name, const Expected& expected) {
  const char* folder = std::getenv("TENON_EGRAPHS");
  if (folder == nullptr || *folder == '\0') {
    state.SkipWithError("left out: TENON_EGRAPHS names no folder with TENSAT's e-graphs");
    return;
  }
  const auto problem = ReadProblem(std::string(folder) + "/" + name + ".json.gz");
  if (!problem.ok()) {
    Worse(state, base::Message(problem.status()).c_str());
    return;
  }
  Run(state, *problem, expected);
}

// Any other e-graph, of the file that TENON_EGRAPH names.
void File(benchmark::State& state) {
  const char* path = std::getenv("TENON_EGRAPH");
  if (path == nullptr) {
    state.SkipWithError("left out: TENON_EGRAPH names no file");
    return;
  }
  const auto problem = ReadProblem(path);
  if (!problem.ok()) {
    Worse(state, base::Message(problem.status()).c_str());
    return;
  }
  Run(state, *problem, {});
}

void Made(benchmark::State& state, const Synthetic& s, const Expected& expected) {
  Run(state, MakeSynthetic(s), expected);
}

#define ONCE ->Iterations(1)->Unit(benchmark::kSecond)->MeasureProcessCPUTime()
BENCHMARK_CAPTURE(Network, vgg_acyclic, "vgg_acyclic", Expected{4.866775, true}) ONCE;
BENCHMARK_CAPTURE(Network, resnet50_acyclic, "resnet50_acyclic", Expected{4.415993, true}) ONCE;
BENCHMARK_CAPTURE(Network, vgg, "vgg", Expected{4.850757, false}) ONCE;
BENCHMARK_CAPTURE(Network, resnet50, "resnet50", Expected{4.385795, true}) ONCE;
BENCHMARK_CAPTURE(Made, few_cycles_11, (Synthetic{.seed = 11}), Expected{-1, true}) ONCE;
BENCHMARK_CAPTURE(Made, few_cycles_12, (Synthetic{.seed = 12}), Expected{-1, true}) ONCE;
BENCHMARK_CAPTURE(Made, many_cycles_11, (Synthetic{.variants = 0.2, .merged = 0.2, .seed = 11}),
                  Expected{-1, true})
ONCE;
BENCHMARK_CAPTURE(Made, many_cycles_12, (Synthetic{.variants = 0.2, .merged = 0.2, .seed = 12}),
                  Expected{-1, true})
ONCE;
// One giant cycle: the best cost and the bound, not a proof.
BENCHMARK_CAPTURE(Made, giant_cycle_11, (Synthetic{.variants = 0.4, .merged = 0.15, .seed = 11}),
                  Expected{})
ONCE;
BENCHMARK_CAPTURE(Made, giant_cycle_12, (Synthetic{.variants = 0.4, .merged = 0.15, .seed = 12}),
                  Expected{})
ONCE;

BENCHMARK(File) ONCE;

}  // namespace

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return g_worse ? 1 : 0;
}

}  // namespace tenon::optimizer::extract

int main(int argc, char** argv) { return tenon::optimizer::extract::Main(argc, argv); }
