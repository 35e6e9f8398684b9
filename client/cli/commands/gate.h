// The thresholds of `tenon optimize`, and the reports of whether they are met.
#pragma once

#include <optional>
#include <string>

#include "client/cli/commands/commands.h"
#include "core/base/status.h"

namespace tenon::optimizer {
struct GateOptions;
struct Report;
}  // namespace tenon::optimizer

namespace tenon::cli {

struct GateFlags {
  bool fail_if_slower = false;
  std::string baseline;  // A report of before; empty: none.
  std::optional<double> min_speedup;
  std::optional<double> max_relative_error;
  std::string junit, markdown;  // Where these go; empty: nowhere.
};

// The thresholds, with the baseline read: before the work, which may write its report there.
// Checks that the files can be written.
StatusOr<optimizer::GateOptions> OpenGate(const GateFlags& flags);

// Judges a result and writes the files. Done, or no if a threshold is not met.
Outcome Judge(Context& context, const GateFlags& flags, const optimizer::GateOptions& thresholds,
              const optimizer::Report& report);

// Writes into the files that there is no result, and why; what cannot be written is warned of.
void ReportError(Context& context, const GateFlags& flags, const std::string& model,
                 const Status& error);

}  // namespace tenon::cli
