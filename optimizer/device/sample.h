// How every meter samples: operations of a batch are run until they are warm and then take turns,
// so that a machine which is slow for a while is slow for all of them. The cost is the median of
// the rounds; means are of no use on shared machines, where single samples are several times too
// long.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "optimizer/device/meter.h"

namespace tenon::optimizer {

// Something that runs and is timed. Thread-compatible.
class Sampled {
 public:
  virtual ~Sampled() = default;
  // Microseconds of `runs` (at least 1) runs in a row, all together.
  virtual double Time(int runs) = 0;
  // Microseconds of one run after its tensors were evicted from all caches.
  virtual double TimeCold() = 0;
};

struct SampleOptions {
  double warm_up_us = 500;    // At least, and three runs.
  double sample_us = 20;      // As many runs in a row as last so long are one warm sample.
  double budget_us = 40'000;  // Of one operation, which decides between 5 and 15 rounds.
};

// One result each; nothing for a null. Each round of an operation is a run that is not timed, a
// warm sample and a cold one.
std::vector<std::optional<Measurement>> SampleInTurns(
    std::span<const std::unique_ptr<Sampled>> operations, const SampleOptions& options = {});

}  // namespace tenon::optimizer
