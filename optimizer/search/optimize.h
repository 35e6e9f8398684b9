// OptimizeGraph: the search over a whole model.
//
// Small models are searched as a whole. A large one is searched piece by piece, from pieces of a
// few operators to larger ones, until no piece can be improved; equal pieces are searched once.
// Backtracking goes from graph to graph and allows a cost up to alpha times that of the model
// throughout; equality saturation holds all graphs of a piece at once and takes the cheapest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "optimizer/device/device.h"
#include "optimizer/search/rule_set.h"

namespace tenon::optimizer {

using SteadyTime = std::chrono::steady_clock::time_point;

enum class SearchMethod : std::uint8_t {
  kBacktrack,  // optimizer/search/backtrack.h
  kEqsat,      // Equality saturation and extraction: optimizer/search/eqsat.h
};
std::string_view NameOf(SearchMethod method);  // "backtrack", "eqsat".
// InvalidArgument: no search has that name.
StatusOr<SearchMethod> SearchMethodNamed(std::string_view name);

struct SearchOptions {
  SearchMethod method = SearchMethod::kBacktrack;
  // Of backtracking. At least 1. With 1, no step may make the graph dearer.
  double alpha = 1.5;
  // Graphs that are expanded, or iterations of saturation. With a budget in steps and no time limit
  // the result is the same in every run.
  std::int64_t step_limit = 200'000;
  // Graphs that are made and priced in the search of one piece, or nodes of its e-graph: bounds the
  // memory (about 200 bytes each).
  std::int64_t graph_limit = 150'000;
  // Backtracking in one piece ends after so many expansions without an improvement.
  std::int64_t patience = 2'000;
  std::chrono::milliseconds time_limit = std::chrono::milliseconds::max();
  // Allows rules of float class `domain` (docs/float-classes.md).
  bool fast_math = false;
  std::stop_token stop;  // A request returns the best graph so far.
  std::function<SteadyTime()> now = std::chrono::steady_clock::now;
};

struct SearchProgress {
  double cost_before_us = 0, cost_us = 0;  // At first, and of the best graph so far.
  std::int64_t steps = 0, graphs = 0;
  std::string phase;  // "pieces of 8", "whole graph".
};

// Why the search ended. What it returns is valid in each case.
enum class SearchEnd : std::uint8_t {
  kComplete,   // Nothing is left within alpha, or the e-graph of the whole model is saturated.
  kExhausted,  // The budget that a piece has was spent in some piece; others may be complete.
  kStepLimit,
  kTimeLimit,
  kInterrupted,
};
std::string_view NameOf(SearchEnd end);

// One step of the derivation: a rule, applied at one or several places at once.
struct SearchStep {
  int rule = 0;         // Index into the rules given; -1: views of views were merged (arena.h).
  bool forward = true;  // From source to target.
  int sites = 1;        // How many tensors it replaced.
  double cost_us = 0;   // Of the whole graph after it.
  std::string where;    // The tensor shapes that it replaced: "float32[32,64,56,56]".
};

// What the last full pass of equality saturation that gained something (the first one if none did)
// says of its e-graphs, one for each piece.
struct SearchExtraction {
  int pieces = 0;
  int optimal = 0;    // Pieces whose result was proved to be the cheapest of its e-graph.
  int saturated = 0;  // Pieces whose e-graph no rule adds to; at the others a limit was met.
  std::int64_t nodes = 0, nodes_max = 0;  // Of all e-graphs, and of the largest one.
  // No graph that the e-graphs hold costs less. Says nothing of what they do not hold.
  double lower_bound_us = 0;
};

struct SearchResult {
  graph::Graph graph;
  double cost_before_us = 0, cost_after_us = 0;
  double lower_bound_us = 0;  // See LowerBound in optimizer/device/device.h.
  GraphCost before, after;
  std::vector<SearchStep> steps;  // In order.
  SearchEnd end = SearchEnd::kComplete;
  std::int64_t steps_spent = 0, graphs_explored = 0;
  int windows = 0, windows_remembered = 0;  // Pieces looked at; of these, equal to an earlier one.
  int rules_refused = 0;                    // Left out because of their float class.
  std::optional<SearchExtraction> extraction;  // Of equality saturation, if a pass was finished.
};

// The inputs of the result are those of `g` in the same order, its outputs have the same types, and
// it never costs more. Opaque nodes and everything that no rule matches stay as they are; what no
// output depends on is left out. InvalidArgument: alpha below 1 or not finite, a limit below 0.
StatusOr<SearchResult> OptimizeGraph(
    const graph::Graph& g, std::span<const SearchRule> rules, const Device& device,
    const SearchOptions& options, const std::function<void(const SearchProgress&)>& progress = {});

}  // namespace tenon::optimizer
