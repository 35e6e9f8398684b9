// tenon profile: what the operators of models cost on this machine, measured ahead of their use.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/files.h"
#include "optimizer/device/cost_cache.h"
#include "optimizer/device/measured.h"
#include "optimizer/onnx/model.h"

namespace tenon::cli {
namespace {

using optimizer::MeasuredDevice;
using optimizer::Operation;

struct Profiled {
  std::size_t operations = 0;  // Different ones, of all models, and those for the estimates.
  MeasuredDevice::Measured measured;
  double seconds = 0;
};

// What is missing of each model and of none before it.
StatusOr<std::vector<Operation>> Missing(const MeasuredDevice& device,
                                         const std::vector<std::string>& models, Console& console) {
  std::vector<Operation> all;
  std::set<std::string> seen;
  for (const std::string& path : models) {
    ASSIGN_OR_RETURN(const optimizer::Model model, optimizer::Import(path));
    for (const std::string& note : model.notes()) console.Warn(note);
    for (Operation& operation : device.Missing(model.graph())) {
      if (seen.insert(optimizer::TextOf(operation)).second) all.push_back(std::move(operation));
    }
  }
  return all;
}

StatusOr<Profiled> Profile(MeasuredDevice& device, const ProfileOptions& options,
                           Context& context) {
  const auto start = std::chrono::steady_clock::now();
  Profiled out;
  ASSIGN_OR_RETURN(const std::vector<Operation> missing,
                   Missing(device, options.models, context.console));
  out.operations = missing.size();
  ASSIGN_OR_RETURN(out.measured,
                   device.MeasureAll(missing, context.interrupt.token(), [&](std::size_t done) {
                     context.console.Progress("operators measured", done, missing.size());
                   }));
  context.console.EndProgress();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

StatusOr<int> ImportCosts(const std::string& path, const std::string& cache) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  ASSIGN_OR_RETURN(const std::vector<optimizer::CostEntry> costs,
                   optimizer::ParseCosts(text, path));
  return optimizer::AddCosts(cache, costs);
}

StatusOr<std::size_t> ExportCosts(const std::string& path, const std::string& cache) {
  ASSIGN_OR_RETURN(const std::vector<optimizer::CostEntry> costs, optimizer::ReadAllCosts(cache));
  RETURN_IF_ERROR(WriteText(path, optimizer::CostsToJson(costs)));
  return costs.size();
}

Json Document(const MeasuredDevice& device, const Profiled& profiled, const std::string& cache) {
  Json json = Json::Object();
  json.Set("device", device.description());
  json.Set("cost_cache", cache);
  json.Set("missing", profiled.operations);
  json.Set("measured", profiled.measured.measured);
  json.Set("estimated", profiled.measured.estimated);
  json.Set("stopped", profiled.measured.stopped);
  json.Set("seconds", profiled.seconds);
  return json;
}

}  // namespace

Outcome ProfileCommand(Context& context, const ProfileOptions& options) {
  Console& console = context.console;
  if (!options.export_to.empty()) RETURN_IF_ERROR(CheckWritable(options.export_to));
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  std::string cache = options.cost_cache;
  if (cache.empty()) {
    ASSIGN_OR_RETURN(cache, optimizer::DefaultCostCache());
  }
  if (!options.import_from.empty()) {
    ASSIGN_OR_RETURN(const int added, ImportCosts(options.import_from, cache));
    console.Print(fmt::format("{} costs of {} were new", added, options.import_from));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<MeasuredDevice> device,
                   optimizer::OpenMeasured(options.device, {.cost_cache = cache}));
  ASSIGN_OR_RETURN(const Profiled profiled, Profile(*device, options, context));
  if (!options.models.empty()) {
    console.Print(device->description());
    console.Print(fmt::format("  {} operators measured, {} without a kernel, in {}; kept in {}",
                              profiled.measured.measured, profiled.measured.estimated,
                              Duration(profiled.seconds), cache));
  }
  if (!options.export_to.empty()) {
    ASSIGN_OR_RETURN(const std::size_t costs, ExportCosts(options.export_to, cache));
    console.Print(fmt::format("{} costs written to {}", costs, options.export_to));
  }
  RETURN_IF_ERROR(Deliver(Document(*device, profiled, cache), options.json, console));
  if (!profiled.measured.stopped) return ExitCode::kDone;
  console.Warn(fmt::format(
      "interrupted: {} operators are left; what was measured is kept",
      profiled.operations - std::size_t(profiled.measured.measured + profiled.measured.estimated)));
  return ExitCode::kNo;
}

}  // namespace tenon::cli
