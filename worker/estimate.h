// What the next level would take, from a sample of its units.
#pragma once

#include "core/base/status.h"
#include "worker/enumerate.h"

namespace tenon::worker {

struct LevelEstimate {
  double graphs = 0;
  double elements = 0;     // Of their values, in all.
  double cpu_seconds = 0;  // To evaluate and hash each once.
};

// Walks some units of level depth()+1 and evaluates some of its graphs. Errors of Evaluator.
StatusOr<LevelEstimate> EstimateLevel(Levels& levels, Evaluator& evaluator, const Hasher& hasher);

}  // namespace tenon::worker
