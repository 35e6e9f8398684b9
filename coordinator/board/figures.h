// Figures of a board, for metrics and pages: what is there now, and what happened since it was
// opened.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "proto/convert/jobs.h"
#include "proto/convert/work.h"

namespace tenon::board {

// By the numbers of convert::TaskKind, JobState and VerdictKind; [0] is unused.
using ByTask = std::array<std::uint64_t, 5>;
using ByState = std::array<std::uint64_t, 9>;
using ByVerdict = std::array<std::uint64_t, 7>;

// Only grow.
struct Totals {
  // Of shards whose result was needed.
  std::uint64_t graphs = 0, records = 0, record_bytes = 0, shards = 0;
  std::uint64_t shards_set_aside = 0;
  ByVerdict verdicts{};
  // Rules that rounds asked for, by whether their verdict was known.
  std::uint64_t verdicts_known = 0, verdicts_asked = 0;
  ByTask leases_given{}, leases_expired{};
  ByState jobs_ended{};
  std::uint64_t rules = 0;  // Published.
  convert::Milliseconds cpu{0};
};

struct Figures {
  ByTask open{};    // Tasks without a result, leased ones among them, those of paused jobs not.
  ByTask leases{};  // More than one for a straggler.
  ByState jobs{};
  std::uint64_t shards_left = 0, proofs_left = 0;  // Of jobs that have not ended.
  Totals totals;
};

}  // namespace tenon::board
