// tenon explain
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/files.h"
#include "optimizer/explain/report.h"

namespace tenon::cli {

Outcome ExplainCommand(Context& context, const ExplainOptions& options) {
  for (const std::string& path : {options.svg, options.dot}) {
    if (!path.empty()) RETURN_IF_ERROR(CheckWritable(path));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadText(options.report));
  ASSIGN_OR_RETURN(const optimizer::Report report, optimizer::ParseReport(text, options.report));
  std::string derivation = optimizer::Explain(report);
  while (derivation.ends_with('\n')) derivation.pop_back();
  context.console.Print(derivation);
  const std::vector<optimizer::Picture> pictures = {report.before, report.after};
  if (!options.svg.empty()) {
    RETURN_IF_ERROR(WriteText(options.svg, optimizer::ToSvg(pictures, {.title = report.model})));
  }
  if (!options.dot.empty()) {
    RETURN_IF_ERROR(WriteText(options.dot, optimizer::ToDot(pictures)));
  }
  return ExitCode::kDone;
}

}  // namespace tenon::cli
