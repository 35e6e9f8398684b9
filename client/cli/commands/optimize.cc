// tenon optimize: read, search, compare, write, in this order, so that nothing is written that was
// not compared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/packs.h"
#include "client/cli/files.h"
#include "core/rules/text.h"
#include "optimizer/device/device.h"
#include "optimizer/eval/compare.h"
#include "optimizer/explain/report.h"
#include "optimizer/fold/fold.h"
#include "optimizer/fold/simplify.h"
#include "optimizer/onnx/model.h"
#include "optimizer/search/built_in.h"
#include "optimizer/search/optimize.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using optimizer::Comparison;
using optimizer::Model;
using optimizer::SearchRule;

double SecondsSince(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, 1e9) * 1000));
}

bool LeftOut(const rules::Rule& rule, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return false;
  const std::string text = rules::PrintRule(rule);
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return rule.name.find(pattern) != std::string::npos || text.find(pattern) != std::string::npos;
  });
}

// The search's own rules and those of all packs, but those that --without names.
StatusOr<std::vector<SearchRule>> ReadRules(const OptimizeOptions& options, Console& console) {
  std::vector<SearchRule> rules = optimizer::BuiltInRules();
  std::erase_if(rules,
                [&](const SearchRule& rule) { return LeftOut(*rule.rule, options.without); });
  for (const std::string& reference : options.packs) {
    ASSIGN_OR_RETURN(const registry::PackFile pack, OpenPack(reference));
    console.Log("pack", {{"reference", pack.reference()},
                         {"address", pack.address},
                         {"rules", std::to_string(pack.content.rules.size())}});
    for (const pack::PackedRule& packed : pack.content.rules) {
      if (LeftOut(packed.rule, options.without)) continue;
      rules.push_back({std::make_shared<rules::Rule>(packed.rule), pack.reference()});
    }
  }
  return rules;
}

// The largest error that rounding to the coarsest type of the model explains: folded weights are
// rounded to it once. 1e-4 for float32, and as many roundings for the short types.
double DefaultTolerance(const graph::Graph& g) {
  double tolerance = 1e-4;
  for (std::size_t id = 0; id < g.size(); ++id) {
    const graph::DataType type = g.node(static_cast<graph::NodeId>(id)).type->dtype;
    if (type == graph::DataType::kFloat16) tolerance = std::max(tolerance, 8.0 / 1024);
    if (type == graph::DataType::kBfloat16) tolerance = std::max(tolerance, 8.0 / 128);
  }
  return tolerance;
}

// What `optimized` must fulfil to be written.
Status Accept(const Comparison& comparison, const OptimizeOptions& options, double tolerance) {
  if (comparison.max_relative_error <= tolerance) return OkStatus();
  return base::FailedPrecondition(fmt::format(
      "the result differs from {} by {:.2g} (relative) at {}, more than --tolerance {:g}; nothing "
      "was written; please report the model and the packs",
      options.model, comparison.max_relative_error, comparison.worst, tolerance));
}

optimizer::ReportCheck CheckOf(const Comparison& comparison) {
  optimizer::ReportCheck check;
  check.max_relative_error = comparison.max_relative_error;
  check.outputs = comparison.outputs;
  check.outputs_compared = comparison.outputs_covered;
  check.nodes_evaluated = comparison.nodes_covered;
  if (comparison.skipped > 0) {
    check.skipped.push_back(fmt::format("{} of {} values: the time for the comparison was over",
                                        comparison.skipped, comparison.values));
  }
  return check;
}

void PrintSummary(const optimizer::Report& report, const Comparison& comparison, Console& console) {
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
  console.Print(fmt::format(
      "  check  {} of {} outputs, largest relative error {:.1e}{}", comparison.outputs_covered,
      comparison.outputs, comparison.max_relative_error,
      comparison.skipped > 0
          ? fmt::format("; {} values not compared for lack of time (--check-time-limit)",
                        comparison.skipped)
          : ""));
  console.Print(fmt::format("  wrote  {} in {}", report.result, Duration(report.seconds)));
}

// The model after the search: the new graph, with what depends on weights only computed.
StatusOr<Model> Rebuilt(const Model& original, const graph::Graph& graph,
                        std::vector<std::string>& notes) {
  Model model = original;
  ASSIGN_OR_RETURN(graph::Graph simple, optimizer::Simplify(graph));
  RETURN_IF_ERROR(model.SetGraph(std::move(simple)));
  ASSIGN_OR_RETURN(const optimizer::FoldSummary folded, optimizer::FoldWeights(model));
  if (folded.left > 0) {
    notes.push_back(fmt::format(
        "{} operators on weights stay in the model, because their results would be much larger",
        folded.left));
  }
  return model;
}

}  // namespace

Outcome OptimizeCommand(Context& context, const OptimizeOptions& options) {
  Console& console = context.console;
  const auto start = Clock::now();
  RETURN_IF_ERROR(CheckWritable(options.out));
  if (!options.report.empty()) RETURN_IF_ERROR(CheckWritable(options.report));
  RETURN_IF_ERROR(CheckDeliverable(options.json));

  ASSIGN_OR_RETURN(const std::unique_ptr<const optimizer::Device> device,
                   optimizer::OpenDevice(options.device));
  ASSIGN_OR_RETURN(const std::vector<SearchRule> rules, ReadRules(options, console));
  if (options.packs.empty()) {
    console.Warn(
        "without --pack there are no rules but the built-in ones: little more than simplification");
  }
  console.Progress("read", 0, 0);
  ASSIGN_OR_RETURN(const Model original, optimizer::Import(options.model));
  console.EndProgress();
  for (const std::string& note : original.notes()) console.Warn(note);

  optimizer::SearchOptions how;
  how.alpha = options.alpha;
  how.time_limit = Milliseconds(options.time_limit_s);
  how.fast_math = options.fast_math;
  how.stop = context.interrupt.token();
  const auto search_start = Clock::now();
  StatusOr<optimizer::SearchResult> result = optimizer::OptimizeGraph(
      original.graph(), rules, *device, how, [&](const optimizer::SearchProgress& progress) {
        console.Progress("search", static_cast<std::uint64_t>(progress.graphs), 0);
      });
  if (!result.ok()) return base::Annotate(result.status(), options.model);

  const double search_seconds = SecondsSince(search_start);
  std::vector<std::string> notes;
  console.Progress("fold", 0, 0);
  ASSIGN_OR_RETURN(const Model optimized, Rebuilt(original, result->graph, notes));
  console.Progress("compare", 0, 0);
  ASSIGN_OR_RETURN(const Comparison comparison,
                   optimizer::Compare(
                       original, optimized,
                       {.seed = options.seed, .budget = Milliseconds(options.check_time_limit_s)}));
  RETURN_IF_ERROR(
      Accept(comparison, options, options.tolerance.value_or(DefaultTolerance(original.graph()))));
  console.Progress("write", 0, 0);
  ASSIGN_OR_RETURN(const optimizer::ExportSummary written,
                   optimizer::Export(optimized, options.out));
  console.EndProgress();
  notes.insert(notes.end(), written.notes.begin(), written.notes.end());
  if (result->end == optimizer::SearchEnd::kInterrupted) {
    notes.emplace_back("the search was interrupted: this is the best it had found by then");
  }
  for (const std::string& note : notes) console.Warn(note);

  optimizer::Report report = optimizer::MakeReport(
      original.graph(), *result, rules,
      [&](const ops::Opaque& op) { return original.ForeignNode(op.key).op_type; });
  report.model = options.model;
  report.result = options.out;
  report.device = device->name();
  report.search = options.search;
  report.alpha = options.alpha;
  report.check = CheckOf(comparison);
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());
  report.search_seconds = search_seconds;
  report.seconds = SecondsSince(start);
  PrintSummary(report, comparison, console);
  const std::string json = optimizer::ToJson(report);
  if (!options.report.empty()) RETURN_IF_ERROR(WriteText(options.report, json));
  if (options.json == "-") {
    console.PrintDocument(json);
  } else if (!options.json.empty()) {
    RETURN_IF_ERROR(WriteText(options.json, json));
  }
  return ExitCode::kDone;
}

}  // namespace tenon::cli
