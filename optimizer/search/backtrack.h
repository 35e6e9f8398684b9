// Backtracking: the cheapest graph that rewriting reaches within a budget, through graphs that may
// be dearer than the best one.
#pragma once

#include <cstdint>
#include <functional>

#include "core/graph/graph.h"
#include "optimizer/device/device.h"
#include "optimizer/search/piece.h"
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

// `g`: concrete sizes, no opaque operators. Deterministic: depends on the arguments only (and on
// when `stop` says so). Improved means by more than rounding.
PieceResult Backtrack(const graph::Graph& g, const RuleSet& rules, const Device& device,
                      const BacktrackLimits& limits);

}  // namespace tenon::optimizer
