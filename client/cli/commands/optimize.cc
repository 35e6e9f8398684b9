// tenon optimize: optimizer/run does the work, here or on a server; the rest is words.
#include <fmt/format.h>

#include "client/cli/commands/optimize.h"
#include "client/cli/commands/optimize_remote.h"
#include "client/cli/commands/packs.h"
#include "client/cli/files.h"
#include "client/registry/default_pack.h"
#include "optimizer/explain/gate.h"
#include "optimizer/run/run.h"

namespace tenon::cli {
namespace {

StatusOr<std::vector<registry::PackFile>> ReadPacks(const OptimizeOptions& options,
                                                    Console& console) {
  std::vector<registry::PackFile> packs;
  std::vector<std::string> references = options.packs;
  if (references.empty()) references.emplace_back(registry::kDefaultPack);
  for (const std::string& reference : references) {
    ASSIGN_OR_RETURN(registry::PackFile pack, OpenPack(reference));
    console.Log("pack", {{"reference", pack.reference()},
                         {"address", pack.address},
                         {"rules", std::to_string(pack.content.rules.size())}});
    packs.push_back(std::move(pack));
  }
  return packs;
}

void PrintSummary(const optimizer::Report& report, Console& console) {
  const bool better = report.cost_after_us < report.cost_before_us;
  const std::string speedup =
      report.cost_after_us > 0
          ? fmt::format("{:.2f} times as fast", report.cost_before_us / report.cost_after_us)
          : std::string("nothing is left to run");
  console.Print(fmt::format("{} on {}", console.Paint(Color::kBold, report.model), report.device));
  console.Print(fmt::format(
      "  cost   {:.1f} us -> {:.1f} us  ({})", report.cost_before_us, report.cost_after_us,
      better ? console.Paint(Color::kGreen, speedup) : "nothing better found"));
  console.Print(fmt::format("  nodes  {} -> {}", report.nodes_before, report.nodes_after));
  console.Print(fmt::format("  rules  {} applied, of {}", report.steps.size(), report.rules_given));
  if (report.check) {
    std::string skipped;
    for (const std::string& what : report.check->skipped) skipped += "; not compared: " + what;
    console.Print(fmt::format("  check  {} of {} outputs, largest relative error {:.1e}{}",
                              report.check->outputs_compared, report.check->outputs,
                              report.check->max_relative_error, skipped));
  }
  console.Print(fmt::format("  wrote  {} in {}", report.result, Duration(report.seconds)));
}

StatusOr<optimizer::Report> OptimizeHere(Context& context, const OptimizeOptions& options) {
  Console& console = context.console;
  ASSIGN_OR_RETURN(const std::vector<registry::PackFile> packs, ReadPacks(options, console));
  optimizer::RunHooks hooks;
  hooks.progress = [&](const optimizer::RunProgress& progress) {
    console.Progress(progress.phase, progress.done, 0);
  };
  hooks.note = [&](const std::string& note) {
    console.EndProgress();
    console.Warn(note);
  };
  hooks.stop = context.interrupt.token();
  ASSIGN_OR_RETURN(
      optimizer::RunResult result,
      optimizer::OptimizeFile(options.model, options.out, packs, options.settings, hooks));
  console.EndProgress();
  for (const std::string& note : result.notes) console.Warn(note);
  return std::move(result.report);
}

Outcome Optimize(Context& context, const OptimizeOptions& options) {
  Console& console = context.console;
  RETURN_IF_ERROR(CheckWritable(options.out));
  if (!options.report.empty()) RETURN_IF_ERROR(CheckWritable(options.report));
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const optimizer::GateOptions thresholds, OpenGate(options.gate));

  ASSIGN_OR_RETURN(const optimizer::Report report, options.server.server.empty()
                                                       ? OptimizeHere(context, options)
                                                       : OptimizeRemotely(context, options));
  PrintSummary(report, console);
  const std::string json = optimizer::ToJson(report);
  if (!options.report.empty()) RETURN_IF_ERROR(WriteText(options.report, json));
  if (options.json == "-") {
    console.PrintDocument(json);
  } else if (!options.json.empty()) {
    RETURN_IF_ERROR(WriteText(options.json, json));
  }
  return Judge(context, options.gate, thresholds, report);
}

}  // namespace

Outcome OptimizeCommand(Context& context, const OptimizeOptions& options) {
  Outcome outcome = Optimize(context, options);
  if (!outcome.ok()) ReportError(context, options.gate, options.model, outcome.status());
  return outcome;
}

}  // namespace tenon::cli
