// Equality saturation: all graphs that rules make of a piece at once, in an e-graph, and the
// cheapest of them.
//
// The idea of TENSAT (Yang et al., MLSys 2021). Where this differs: rules that merge several
// outputs meet each set of tensors a bounded number of times, the cheapest graph is proved to be
// that where possible (optimizer/extract), and the result comes with the applications of rules that
// it needs, checked without the e-graph.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "optimizer/device/device.h"
#include "optimizer/extract/extract.h"
#include "optimizer/search/eqsat_rules.h"
#include "optimizer/search/piece.h"

namespace tenon::optimizer {

struct EqsatLimits {
  int iterations = 12;
  std::int64_t nodes = 6'000;    // Of the e-graph; bounds the memory.
  std::int64_t backoff = 400;    // Matches of one direction of a rule in an iteration, at first.
  extract::Limits extraction{};  // Its deadline is that of the whole search.
  // Classes beyond which only greedy choice and local search look for the cheapest graph of an
  // e-graph that is not saturated: what is proved of it says little.
  int classes_unsaturated = 150;
  // A request ends it with the best graph so far; so does `late`, asked often.
  std::stop_token stop;
  std::function<bool()> late;
};

// `g`: concrete sizes, no opaque operators. Deterministic but for a stop. Improved means by more
// than rounding, or equally cheap with fewer operators. Internal when a result contradicts itself:
// a cost or a proof that cannot be repeated.
StatusOr<PieceResult> Saturate(const graph::Graph& g, const EqsatRules& rules, const Device& device,
                               const EqsatLimits& limits);

}  // namespace tenon::optimizer
