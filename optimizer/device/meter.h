// Meter: a piece of hardware with its library, which runs operations and says how long they take.
//
// What `cpu` (oneDNN) and `cuda` (cuDNN, cuBLASLt) have in common, and what tests replace: a
// MeasuredDevice asks its meter only for what its cache does not hold.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optimizer/device/operation.h"

namespace tenon::optimizer {

// Microseconds of one run, medians over `samples` rounds.
struct Measurement {
  double warm_us = 0;  // Its tensors were used just before: what is small is in the caches.
  double cold_us = 0;  // Its tensors were evicted from all caches before.
  int samples = 0;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// Thread-compatible.
class Meter {
 public:
  virtual ~Meter() = default;

  // What a measurement depends on besides the operation: library, version, hardware, threads. One
  // line of printable ASCII; the key of caches. "cpu oneDNN 2.6.3 threads=1 isa=..".
  virtual const std::string& identity() const = 0;

  // One result an operation. The operations are prepared together and measured in turns, so that a
  // disturbance meets all of them; keep batches to a few dozen. Nothing: the library has no
  // kernel, or not the memory.
  virtual std::vector<std::optional<Measurement>> Measure(
      std::span<const Operation> operations) = 0;
};

}  // namespace tenon::optimizer
