// What a job may take: its estimate against what there is.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/status.h"
#include "proto/convert/jobs.h"

namespace tenon::board {

struct Limits {
  std::uint64_t memory_bytes = 0;           // Of a slot, unless the job says less.
  std::uint64_t graphs = 0;                 // 0: no limit.
  std::optional<std::uint64_t> disk_bytes;  // On all stores together; absent: not known.
};

// ResourceExhausted (reason ABOVE_LIMIT) names every limit that `estimate` is above, with the
// numbers; the metadata has the same: field, estimate, limit of the first.
Status CheckEstimate(const convert::JobSpec& spec, const convert::JobEstimate& estimate,
                     const Limits& limits);

}  // namespace tenon::board
