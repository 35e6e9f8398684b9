// OptimizeFile: a model file in, a faster one out, and the report: read, search, fold, compare,
// write, in this order, so that nothing is written that was not compared. What `tenon optimize`
// and the optimizer's role both do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/registry/pack_file.h"
#include "core/base/status.h"
#include "optimizer/eval/compare.h"
#include "optimizer/explain/report.h"
#include "optimizer/run/settings.h"
#include "optimizer/search/optimize.h"
#include "optimizer/search/rule_set.h"

namespace tenon::optimizer {

struct RunProgress {
  std::string_view phase;  // "read", "search", "fold", "compare" or "write".
  std::uint64_t done = 0;  // Graphs that the search has seen.
  double cost_us = 0;      // Of the best graph so far; 0 before the search has begun.
};

struct RunHooks {
  // May be empty. From one thread.
  std::function<void(const RunProgress& progress)> progress;
  // Noticed before the search: a line each. May be empty.
  std::function<void(const std::string& note)> note;
  // A request during the search ends it, and the best graph by then is the result; one that comes
  // later ends the run without a result.
  std::stop_token stop;
  // When the search and the comparison end, whatever the limits of the settings would still allow.
  std::optional<SteadyTime> search_end, check_end;
};

struct RunResult {
  Report report;
  Comparison comparison;
  std::vector<std::string> files;  // What was written: the model, and its data file if it has one.
  std::vector<std::string> notes;  // Those of the report that the user should be told.
};

// The search's own rules and those of the packs, in this order, but those that `without` names.
std::vector<SearchRule> RulesOf(std::span<const registry::PackFile> packs,
                                const std::vector<std::string>& without);

// Errors name `model`. CANCELLED: stopped after the search; nothing was written.
// FailedPrecondition: the result differs from the original by more than the tolerance. Errors of
// OpenDevice, Import, OptimizeGraph, Compare and Export.
StatusOr<RunResult> OptimizeFile(const std::string& model, const std::string& out,
                                 std::span<const registry::PackFile> packs,
                                 const RunSettings& settings, const RunHooks& hooks);

}  // namespace tenon::optimizer
