#include "optimizer/run/run.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "core/rules/text.h"
#include "optimizer/device/cost_cache.h"
#include "optimizer/device/device.h"
#include "optimizer/fold/fold.h"
#include "optimizer/fold/simplify.h"
#include "optimizer/onnx/model.h"
#include "optimizer/search/built_in.h"

namespace tenon::optimizer {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// `seconds`, or less if `end` comes sooner.
std::chrono::milliseconds Limit(double seconds, const std::optional<SteadyTime>& end) {
  const std::chrono::milliseconds limit(static_cast<std::int64_t>(std::min(seconds, 1e9) * 1000));
  if (!end) return limit;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*end - Clock::now());
  return std::clamp(left, std::chrono::milliseconds(0), limit);
}

bool LeftOut(const rules::Rule& rule, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return false;
  const std::string text = rules::PrintRule(rule);
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return rule.name.find(pattern) != std::string::npos || text.find(pattern) != std::string::npos;
  });
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

// What the result must fulfil to be written.
Status Accept(const std::string& model, const Comparison& comparison, double tolerance) {
  if (comparison.max_relative_error <= tolerance) return OkStatus();
  return base::FailedPrecondition(fmt::format(
      "the result differs from {} by {:.2g} (relative) at {}, more than --tolerance {:g}; nothing "
      "was written; please report the model and the packs",
      model, comparison.max_relative_error, comparison.worst, tolerance));
}

ReportCheck CheckOf(const Comparison& comparison) {
  ReportCheck check;
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

// The model after the search: the new graph, with what depends on weights only computed.
StatusOr<Model> Rebuilt(const Model& original, const graph::Graph& graph,
                        std::vector<std::string>& notes) {
  Model model = original;
  ASSIGN_OR_RETURN(graph::Graph simple, Simplify(graph));
  RETURN_IF_ERROR(model.SetGraph(std::move(simple)));
  ASSIGN_OR_RETURN(const FoldSummary folded, FoldWeights(model));
  if (folded.left > 0) {
    notes.push_back(fmt::format(
        "{} operators on weights stay in the model, because their results would be much larger",
        folded.left));
  }
  return model;
}

StatusOr<std::unique_ptr<const Device>> OpenDeviceOf(const RunSettings& settings) {
  DeviceOptions options{settings.cost_cache};
  if (IsMeasured(settings.device) && options.cost_cache.empty()) {
    ASSIGN_OR_RETURN(options.cost_cache, DefaultCostCache());
  }
  return OpenDevice(settings.device, options);
}

}  // namespace

std::vector<SearchRule> RulesOf(std::span<const registry::PackFile> packs,
                                const std::vector<std::string>& without) {
  std::vector<SearchRule> rules = BuiltInRules();
  std::erase_if(rules, [&](const SearchRule& rule) { return LeftOut(*rule.rule, without); });
  for (const registry::PackFile& pack : packs) {
    for (const pack::PackedRule& packed : pack.content.rules) {
      if (LeftOut(packed.rule, without)) continue;
      rules.push_back({std::make_shared<rules::Rule>(packed.rule), pack.reference()});
    }
  }
  return rules;
}

StatusOr<RunResult> OptimizeFile(const std::string& model, const std::string& out,
                                 std::span<const registry::PackFile> packs,
                                 const RunSettings& settings, const RunHooks& hooks) {
  const auto start = Clock::now();
  const auto tell = [&](const RunProgress& progress) {
    if (hooks.progress) hooks.progress(progress);
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<const Device> device, OpenDeviceOf(settings));
  const std::vector<SearchRule> rules = RulesOf(packs, settings.without);
  tell({.phase = "read"});
  ASSIGN_OR_RETURN(const Model original, Import(model));
  for (const std::string& note : original.notes()) {
    if (hooks.note) hooks.note(note);
  }

  SearchOptions how;
  ASSIGN_OR_RETURN(how.method, SearchMethodNamed(settings.search));
  how.alpha = settings.alpha;
  how.time_limit = Limit(settings.time_limit_s, hooks.search_end);
  how.fast_math = settings.fast_math;
  how.stop = hooks.stop;
  const auto search_start = Clock::now();
  double cost_us = 0;
  StatusOr<SearchResult> found =
      OptimizeGraph(original.graph(), rules, *device, how, [&](const SearchProgress& progress) {
        cost_us = progress.cost_us;
        tell({"search", static_cast<std::uint64_t>(progress.graphs), cost_us});
      });
  if (!found.ok()) return base::Annotate(found.status(), model);
  const double search_seconds = SecondsSince(search_start);
  // The stop that ended the search wants its result; the next thing to be stopped is the rest.
  const bool was_stopped = found->end == SearchEnd::kInterrupted;
  const auto stopped = [&]() -> Status {
    if (was_stopped || !hooks.stop.stop_requested()) return OkStatus();
    return absl::CancelledError(
        fmt::format("{}: stopped before the result was compared; nothing was written", model));
  };

  RunResult result;
  tell({"fold", 0, found->cost_after_us});
  ASSIGN_OR_RETURN(const Model optimized, Rebuilt(original, found->graph, result.notes));
  RETURN_IF_ERROR(stopped());
  tell({"compare", 0, found->cost_after_us});
  CompareOptions compare;
  compare.seed = settings.seed;
  compare.budget = Limit(settings.check_time_limit_s, hooks.check_end);
  if (!was_stopped) compare.stop = hooks.stop;
  ASSIGN_OR_RETURN(result.comparison, Compare(original, optimized, compare));
  RETURN_IF_ERROR(stopped());
  RETURN_IF_ERROR(Accept(model, result.comparison,
                         settings.tolerance.value_or(DefaultTolerance(original.graph()))));
  tell({"write", 0, found->cost_after_us});
  ASSIGN_OR_RETURN(ExportSummary written, Export(optimized, out));
  result.files = std::move(written.files);
  result.notes.insert(result.notes.end(), written.notes.begin(), written.notes.end());
  if (was_stopped) {
    result.notes.emplace_back("the search was interrupted: this is the best it had found by then");
  }

  for (std::string& note : device->Notes()) result.notes.push_back(std::move(note));

  Report& report = result.report;
  report = MakeReport(original.graph(), *found, rules,
                      [&](const ops::Opaque& op) { return original.ForeignNode(op.key).op_type; });
  report.model = model;
  report.result = out;
  report.device = device->description();
  report.search = settings.search;
  report.alpha = settings.alpha;
  report.check = CheckOf(result.comparison);
  report.notes.insert(report.notes.end(), result.notes.begin(), result.notes.end());
  report.search_seconds = search_seconds;
  report.seconds = SecondsSince(start);
  return result;
}

}  // namespace tenon::optimizer
