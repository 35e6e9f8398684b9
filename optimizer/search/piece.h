// What a search makes of one piece of a model, whichever search it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::optimizer {

// One step of the derivation of a result: a rule, at `sites` places at once.
struct Move {
  int rule = -1;        // Index into the rules that the search was given; -1: views were merged.
  bool forward = true;  // From source to target.
  int sites = 1;
  double cost_us = 0;  // Of the piece after it.
};

// What extraction says of an e-graph: every graph in it costs `lower_bound_us` or more.
struct Extraction {
  double cost_us = 0, lower_bound_us = 0;
  bool optimal = false;    // The bound is the cost, but for rounding (extract::kTolerance).
  bool saturated = false;  // No rule adds anything to the e-graph; else a limit ended it.
  std::int64_t nodes = 0, classes = 0;  // Of the e-graph.
  int iterations = 0;
};

// A value type.
struct PieceResult {
  bool improved = false;
  graph::Graph graph;  // The best one, if improved; same inputs, outputs of the same types.
  double cost_before_us = 0, cost_after_us = 0;
  std::vector<Move> moves;             // From the given graph to the best one.
  std::int64_t steps = 0, graphs = 0;  // What was spent: graphs expanded, and made and priced; or
                                       // iterations, and nodes of the e-graph.
  bool complete = false;               // Nothing is left to look at.
  std::optional<Extraction> extraction;
};

}  // namespace tenon::optimizer
