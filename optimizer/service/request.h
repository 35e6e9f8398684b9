// What a call asks for, as the optimizer understands it.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "optimizer/run/settings.h"
#include "optimizer/search/optimize.h"
#include "proto/convert/optimize.h"

namespace tenon::optimizer {

// What is not said is as RunSettings has it.
RunSettings SettingsOf(const convert::OptimizeOptions& options);

// Names the result of a model with these packs ("NAME@VERSION ADDRESS", in order) and settings,
// made by this version of the program: SHA-256 of canonical bytes, hexadecimal. What differs in
// anything that may change the result or its report has another one.
std::string ResultKey(const std::string& model_sha256, std::span<const std::string> packs,
                      const RunSettings& settings, const std::string& code_version);

// How the time up to the deadline of a call is shared out: most of it to the search; the rest is
// for computing weights, comparing, writing and sending the result back.
struct TimeShares {
  std::optional<SteadyTime> search_end, check_end;  // None: there is no deadline.
  SteadyTime kill_at;  // What still works then hangs, or is of no use any more.
};
TimeShares ShareTime(SteadyTime now, const std::optional<SteadyTime>& deadline,
                     const RunSettings& settings);

}  // namespace tenon::optimizer
