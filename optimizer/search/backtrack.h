// Backtracking: the cheapest graph that rewriting reaches within a budget, through graphs that may
// be dearer than the best one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/graph/graph.h"
#include "optimizer/device/device.h"
#include "optimizer/search/rule_set.h"

namespace tenon::optimizer {

struct BacktrackLimits {
  // An intermediate graph may cost max(alpha * best, best + slack_us), but at most three times the
  // best (a piece of a model is small against the slack of the whole).
  double alpha = 1.0;
  double slack_us = 0;
  std::int64_t steps = 1000;      // Graphs that are expanded.
  std::int64_t graphs = 100'000;  // Graphs that are made and priced; bounds the memory.
  std::int64_t patience = 5'000;  // Expansions since the last improvement.
  // Asked before each expansion; true ends the search with the best graph so far.
  std::function<bool()> stop;
};

// One move from a graph to the next: a rule, at `sites` places at once.
struct Move {
  int rule = -1;  // Index into RuleSet::entries(); -1: views were merged (arena.h).
  int sites = 1;
  double cost_us = 0;  // Of the graph after it.
};

struct BacktrackResult {
  bool improved = false;
  graph::Graph graph;  // The best one, if improved; same inputs, outputs of the same types.
  double cost_before_us = 0, cost_after_us = 0;
  std::vector<Move> moves;             // From the given graph to the best one.
  std::int64_t steps = 0, graphs = 0;  // What was spent.
  bool complete = false;               // Nothing within the bound is left to expand.
};

// `g`: concrete sizes, no opaque operators. Deterministic: depends on the arguments only (and on
// when `stop` says so). Improved means by more than rounding.
BacktrackResult Backtrack(const graph::Graph& g, const RuleSet& rules, const Device& device,
                          const BacktrackLimits& limits);

}  // namespace tenon::optimizer
