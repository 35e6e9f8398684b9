// What an enumeration would take, from a sample of its units.
#pragma once

#include <cstdint>
#include <span>

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

// What a process needs that has built `kept`, levels from size 1. `renamings` is 1 but in canonical
// mode.
double KeptBytes(std::span<const LevelEstimate> kept, double renamings);
// What the last level adds, be it for a shard or for collecting the classes.
double LastLevelBytes(double graphs, std::uint32_t shards);

// What a whole enumeration takes.
struct EnumerationEstimate {
  double graphs = 0;
  double cpu_seconds = 0;   // Of all shards together, on a CPU like this one.
  double memory_bytes = 0;  // Of one process.
  double record_bytes = 0;  // On disk.
  bool extrapolated = false;
};

// Looks only at levels that cost about a second and half a gigabyte, however large the universe;
// the rest is extrapolated from the growth of the levels below. The limits of `options` and its
// `progress` are ignored. Errors of Enumerator::Prepare but ResourceExhausted.
StatusOr<EnumerationEstimate> EstimateEnumeration(const graph::Universe& universe,
                                                  const EnumerateOptions& options);

}  // namespace tenon::worker
