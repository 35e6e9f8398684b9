// How many graphs the search makes and prices in a second, and what whole models take.
#include <benchmark/benchmark.h>

#include <string>

#include "optimizer/search/built_in.h"
#include "optimizer/search/optimize.h"
#include "tests/optimizer/lecture_graphs.h"
#include "tests/optimizer/rule_files.h"

namespace tenon::optimizer {
namespace {

std::vector<SearchRule> Rules() {
  std::vector<SearchRule> rules = LectureRules();
  for (SearchRule& r : BuiltInRules()) rules.push_back(std::move(r));
  return rules;
}

void Run(benchmark::State& state, const graph::Graph& g) {
  const auto rules = Rules();
  const auto device = OpenDevice("roofline:h100");
  CHECK(device.ok());
  std::int64_t graphs = 0, steps = 0;
  double cost = 0;
  for (auto _ : state) {
    const auto result = OptimizeGraph(g, rules, **device, {});
    CHECK(result.ok());
    graphs += result->graphs_explored;
    steps += result->steps_spent;
    cost = result->cost_after_us;
  }
  state.counters["graphs/s"] = benchmark::Counter(double(graphs), benchmark::Counter::kIsRate);
  state.counters["steps/s"] = benchmark::Counter(double(steps), benchmark::Counter::kIsRate);
  state.counters["cost_us"] = cost;
}

void BM_ResnetBlock(benchmark::State& state) { Run(state, ResnetBlock()); }
BENCHMARK(BM_ResnetBlock)->Unit(benchmark::kMillisecond);
void BM_Qkv(benchmark::State& state) { Run(state, Qkv()); }
BENCHMARK(BM_Qkv)->Unit(benchmark::kMillisecond);
void BM_Lora(benchmark::State& state) { Run(state, Lora()); }
BENCHMARK(BM_Lora)->Unit(benchmark::kMillisecond);

// As many blocks in a row as the argument says: equal pieces are searched once.
void BM_Blocks(benchmark::State& state) { Run(state, Blocks(state.range(0))); }
BENCHMARK(BM_Blocks)->Arg(4)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon::optimizer
