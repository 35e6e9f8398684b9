#include "client/cli/commands/gate.h"

#include <fmt/format.h>

#include "client/cli/files.h"
#include "optimizer/explain/gate.h"

namespace tenon::cli {
StatusOr<optimizer::GateOptions> OpenGate(const GateFlags& flags) {
  for (const std::string& path : {flags.junit, flags.markdown}) {
    if (!path.empty()) RETURN_IF_ERROR(CheckWritable(path));
  }
  optimizer::GateOptions thresholds{.fail_if_slower = flags.fail_if_slower,
                                    .baseline = std::nullopt,
                                    .min_speedup = flags.min_speedup,
                                    .max_relative_error = flags.max_relative_error};
  if (flags.baseline.empty()) return thresholds;
  ASSIGN_OR_RETURN(const std::string text, ReadText(flags.baseline));
  ASSIGN_OR_RETURN(thresholds.baseline, optimizer::ParseReport(text, flags.baseline));
  return thresholds;
}

Outcome Judge(Context& context, const GateFlags& flags, const optimizer::GateOptions& thresholds,
              const optimizer::Report& report) {
  ASSIGN_OR_RETURN(const optimizer::Decision decision, optimizer::Decide(report, thresholds));
  Console& console = context.console;
  for (const optimizer::GateCheck& check : decision.checks) {
    console.Print(fmt::format("  {}  {}: {}",
                              check.passed ? console.Paint(Color::kGreen, "passed")
                                           : console.Paint(Color::kRed, "failed"),
                              check.name, check.says));
  }
  if (!flags.junit.empty()) {
    RETURN_IF_ERROR(WriteText(flags.junit, optimizer::ToJunit(report, decision)));
  }
  if (!flags.markdown.empty()) {
    RETURN_IF_ERROR(WriteText(flags.markdown, optimizer::ToMarkdown(report, decision)));
  }
  return decision.passed() ? ExitCode::kDone : ExitCode::kNo;
}

void ReportError(Context& context, const GateFlags& flags, const std::string& model,
                 const Status& error) {
  const auto write = [&](const std::string& path, const std::string& text) {
    if (path.empty()) return;
    const Status written = WriteText(path, text);
    if (!written.ok()) context.console.Warn(base::Message(written));
  };
  write(flags.junit, optimizer::ToJunit(model, error));
  write(flags.markdown, optimizer::ToMarkdown(model, error));
}

}  // namespace tenon::cli
