// How fast classes are reduced to rules, proofs aside: the whole of it, the shared e-graph, and
// pairs asked alone.
#include <benchmark/benchmark.h>

#include "coordinator/reduce/reduce.h"
#include "core/rules/lift.h"
#include "proto/convert/universe.h"
#include "worker/enumerate.h"

namespace tenon::reduce {
namespace {

struct Found {
  worker::Enumeration all;
  Reduction reduced;
  Classes View() const { return {all.table, all.class_at, all.class_members}; }
};

// Takes every rule for proved; lifting has tried them on random instances.
StatusOr<Reduction> ReduceUnproved(const Classes& classes) {
  return Reduce(
      classes,
      [](const graph::Graph& g, graph::NodeId a, graph::NodeId b) { return rules::Lift(g, a, b); },
      [](std::span<const rules::Rule* const> batch) -> StatusOr<std::vector<Verdict>> {
        return std::vector<Verdict>(batch.size(), Verdict::kProved);
      });
}

StatusOr<Found> Find(const char* name) {
  ASSIGN_OR_RETURN(const graph::Universe universe, convert::LoadUniverse(name));
  Found found;
  ASSIGN_OR_RETURN(found.all, worker::Enumerate(universe, {}));
  ASSIGN_OR_RETURN(found.reduced, ReduceUnproved(found.View()));
  return found;
}

egraph::RuleSet RulesOf(egraph::Vocabulary& words, const Reduction& reduced) {
  egraph::RuleSet rules(words);
  for (const KeptRule& k : reduced.rules) rules.Add(std::make_shared<const rules::Rule>(k.rule));
  return rules;
}

void ReduceAll(benchmark::State& state, const char* name) {
  const auto found = Find(name);
  if (!found.ok()) return state.SkipWithError(base::Message(found.status()).c_str());
  for (auto _ : state) {
    const auto reduced = ReduceUnproved(found->View());
    benchmark::DoNotOptimize(reduced);
  }
  state.counters["rules"] = double(found->reduced.rules.size());
  state.counters["candidates"] = double(found->reduced.candidates);
  state.counters["underivable"] = double(found->reduced.underivable);
}
BENCHMARK_CAPTURE(ReduceAll, matrix, "matrix")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReduceAll, conv, "conv")->Unit(benchmark::kMillisecond);

void SaturateShared(benchmark::State& state, const char* name) {
  const auto found = Find(name);
  if (!found.ok()) return state.SkipWithError(base::Message(found.status()).c_str());
  egraph::Vocabulary words;
  const egraph::RuleSet rules = RulesOf(words, found->reduced);
  egraph::TermLoader loader(words, found->all.table);
  for (auto _ : state) {
    egraph::EGraph g(words, {.commutative = true});
    loader.AddAll(g);
    egraph::Saturator(rules).Run(g, {.iterations = 100, .nodes = SIZE_MAX, .create = false});
    state.counters["nodes"] = double(g.node_count());
  }
}
BENCHMARK_CAPTURE(SaturateShared, matrix, "matrix")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SaturateShared, conv, "conv")->Unit(benchmark::kMillisecond);

// The pairs of graphs to `operators`, 0: as many as the rules are of.
void PairsAlone(benchmark::State& state, const char* name, int operators) {
  auto found = Find(name);
  if (!found.ok()) return state.SkipWithError(base::Message(found.status()).c_str());
  if (operators != 0) {
    auto all = worker::Enumerate(found->all.universe, {.max_operators = operators});
    if (!all.ok()) return state.SkipWithError(base::Message(all.status()).c_str());
    found->all = *std::move(all);
  }
  egraph::Vocabulary words;
  const egraph::RuleSet rules = RulesOf(words, found->reduced);
  PairDeriver deriver(words, found->all.table, {.commutative = true});
  std::size_t pairs = 0;
  for (auto _ : state) {
    deriver.Use(rules);
    pairs = 0;
    for (std::size_t c = 0; c < found->all.class_count(); ++c) {
      const auto members = found->all.members(c);
      for (std::size_t i = 1; i < members.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j, ++pairs) {
          benchmark::DoNotOptimize(deriver.Derives(members[j], members[i]));
        }
      }
    }
  }
  state.SetItemsProcessed(std::int64_t(pairs) * state.iterations());
}
BENCHMARK_CAPTURE(PairsAlone, matrix, "matrix", 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PairsAlone, matrix_4, "matrix", 4)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PairsAlone, conv, "conv", 0)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tenon::reduce
