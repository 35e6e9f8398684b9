// The cheapest way to compute the roots of an e-graph, and how far from the cheapest it may be.
//
// Anytime, in stages: greedy on the DAG; local search; the linear relaxation with cuts, whose
// solutions lead new greedy passes and whose reduced costs take nodes out; the integer program over
// the nodes that respect an order of the classes; the integer program over all nodes.
//
// Two runs with equal arguments give equal results unless a deadline or a stop ends one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>

#include "optimizer/extract/incumbent.h"

namespace tenon::optimizer::extract {

// Costs that differ by less than this part of them are one: solvers compute in floating point.
inline constexpr double kTolerance = 1e-7;

struct Limits {
  std::int64_t search_steps = 200'000'000;   // Classes visited by local search.
  int relaxation_rounds = 60;                // Of cuts, for each linear program.
  int landmark_classes = 150;                // Looked at in each round.
  std::int64_t landmark_steps = 20'000'000;  // Edges followed in each round.
  int branches = 20'000;                     // Nodes in the tree of each integer program.
  int integer_programs = 40;                 // Solved in each of the two stages.
  // Classes that the roots can reach and compute, beyond which only greedy and local search run
  // and the bound is PathBound: the sets of classes would take more than classes^2 / 8 bytes each.
  int classes = 30'000;
  // Last resort: what is done by then depends on the machine.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct Progress {
  Stage stage;
  double cost, lower_bound;
};

struct Options {
  Limits limits;
  std::stop_token stop;  // Ends it soon, with the best so far: at least a greedy choice.
  std::function<void(const Progress&)> progress;  // May be empty. Called on the caller's thread.
};

enum class Verdict : std::uint8_t {
  kOptimal,     // No choice is cheaper, within kTolerance.
  kFeasible,    // A choice, with a bound.
  kInfeasible,  // The roots cannot be computed without a cycle.
};

struct Result {
  Verdict verdict = Verdict::kInfeasible;
  // For the classes that the roots need; kNoNode for the others, and for all when infeasible.
  Choice choice;
  double cost = 0;         // Recomputed from the choice.
  double lower_bound = 0;  // Proved, as far as floating point goes; the cost when optimal.
  Stage found_by = Stage::kGreedy;
  bool interrupted = false;  // By the deadline or a stop.
  // What was left when useless nodes were gone.
  int classes = 0, nodes = 0;

  double Gap() const { return cost > 0 ? (cost - lower_bound) / cost : 0; }
};

// InvalidArgument as Validate; Internal when a solver's claim is contradicted by a choice.
StatusOr<Result> Extract(const Problem& problem, const Options& options);

std::string_view Name(Stage stage);
std::string_view Name(Verdict verdict);

}  // namespace tenon::optimizer::extract
