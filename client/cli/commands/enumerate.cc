// tenon enumerate
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/enumeration.h"
#include "client/cli/files.h"
#include "client/cli/universes.h"
#include "worker/sets/enumerate.h"

namespace tenon::cli {
namespace {

Json Document(const worker::Enumeration& found) {
  Json by_size = Json::Array();
  for (const std::uint64_t count : found.graphs_by_size) by_size.Append(count);
  return Json::Object({
      {"universe", found.universe.name},
      {"mode", found.mode == worker::Mode::kCanonical ? "canonical" : "exhaustive"},
      {"max_operators", found.max_operators},
      {"graphs", found.graphs},
      {"graphs_by_size", std::move(by_size)},
      {"classes", found.classes},
      {"equivalent_pairs", found.equivalent_pairs},
      {"seconds", found.seconds},
      {"cpu_seconds", found.cpu_seconds},
      {"graphs_per_second",
       found.seconds > 0 ? static_cast<double>(found.graphs) / found.seconds : 0.0},
      {"peak_rss_bytes", found.peak_rss_bytes},
      {"record_bytes", found.record_bytes},
      {"split_classes", found.split_classes},
  });
}

void Print(const worker::Enumeration& found, Console& console) {
  console.Print(fmt::format("{} to {} operators, {}",
                            console.Paint(Color::kBold, found.universe.name), found.max_operators,
                            found.mode == worker::Mode::kCanonical ? "canonical" : "exhaustive"));
  for (std::size_t k = 0; k < found.graphs_by_size.size(); ++k) {
    console.Print(fmt::format("  graphs of {} operator{:<9} {:>14}", k + 1, k == 0 ? "" : "s",
                              Grouped(found.graphs_by_size[k])));
  }
  console.Print(fmt::format("  graphs                      {:>12}", Grouped(found.graphs)));
  console.Print(fmt::format("  classes (functions)         {:>12}", Grouped(found.classes)));
  console.Print(
      fmt::format("  equivalent pairs            {:>12}", Grouped(found.equivalent_pairs)));
  console.Print(fmt::format("  {} ({} graphs a second), {} at most, {} of records",
                            Duration(found.seconds),
                            Grouped(static_cast<std::uint64_t>(static_cast<double>(found.graphs) /
                                                               std::max(1e-9, found.seconds))),
                            Bytes(found.peak_rss_bytes), Bytes(found.record_bytes)));
}

Json Document(const graph::Universe& universe, const worker::SetEnumeration& found) {
  Json graphs = Json::Array(), sequences = Json::Array();
  for (const std::uint64_t count : found.graphs_by_size) graphs.Append(count);
  for (const std::uint64_t count : found.sequences_by_size) sequences.Append(count);
  return Json::Object({
      {"universe", universe.name},
      {"mode", "exhaustive"},
      {"max_operators", static_cast<std::int64_t>(found.graphs_by_size.size())},
      {"graphs", found.graphs},
      {"graphs_by_size", std::move(graphs)},
      {"sequences_by_size", std::move(sequences)},
      {"classes", found.classes},
      {"shared_classes", found.shared_classes},
      {"graphs_in_shared_classes", found.graphs_in_shared},
      {"equivalent_pairs", found.equivalent_pairs},
      {"passes", found.passes},
      {"seconds", found.seconds},
      {"cpu_seconds", found.cpu_seconds},
      {"graphs_per_second",
       found.seconds > 0 ? static_cast<double>(found.graphs) / found.seconds : 0.0},
      {"peak_rss_bytes", found.peak_rss_bytes},
      {"record_bytes", found.record_bytes},
  });
}

void Print(const graph::Universe& universe, const worker::SetEnumeration& found, Console& console) {
  console.Print(fmt::format("{} to {} operators, any number of outputs",
                            console.Paint(Color::kBold, universe.name),
                            found.graphs_by_size.size()));
  for (std::size_t k = 0; k < found.graphs_by_size.size(); ++k) {
    console.Print(fmt::format("  graphs of {} operator{:<9} {:>14}, in {} orders of operators",
                              k + 1, k == 0 ? "" : "s", Grouped(found.graphs_by_size[k]),
                              Grouped(found.sequences_by_size[k])));
  }
  console.Print(fmt::format("  graphs                      {:>12}", Grouped(found.graphs)));
  console.Print(fmt::format("  classes (functions)         {:>12}, {} of them with several graphs",
                            Grouped(found.classes), Grouped(found.shared_classes)));
  console.Print(fmt::format("  {} ({} of CPU), {} at most, {} of records", Duration(found.seconds),
                            Duration(found.cpu_seconds), Bytes(found.peak_rss_bytes),
                            Bytes(found.record_bytes)));
}

}  // namespace

std::string_view EnumerationStage(std::string_view phase) {
  if (phase == "values") return "enumerate: values of smaller graphs";
  if (phase == "graphs") return "enumerate: graphs";
  if (phase == "classes") return "enumerate: classes";
  if (phase == "samples") return "enumerate: classes at biased samples";
  return phase;
}

std::uint64_t DefaultMemoryLimit() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib * 1024 / 4 * 3;
  }
  return 0;
}

worker::EnumerateOptions ToWorkerOptions(const EnumerationOptions& options, Context& context) {
  worker::EnumerateOptions result;
  result.max_operators = options.max_operators.value_or(0);
  result.mode = options.mode == "canonical" ? worker::Mode::kCanonical : worker::Mode::kExhaustive;
  result.shards = options.shards;
  result.seed = options.seed;
  result.memory_limit_bytes =
      options.memory_limit_bytes > 0 ? options.memory_limit_bytes : DefaultMemoryLimit();
  result.time_limit_seconds = options.time_limit_s;
  result.progress = [&context](const worker::Progress& progress) {
    context.console.Progress(EnumerationStage(progress.phase), progress.done, progress.total);
    return !context.interrupt.requested();
  };
  return result;
}

Outcome EnumerateCommand(Context& context, const EnumerateOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const graph::Universe universe, OpenUniverse(options.enumeration.universe));
  worker::EnumerateOptions how = ToWorkerOptions(options.enumeration, context);
  how.keep_all = false;
  if (universe.outputs == graph::Outputs::kMultiple) {
    ASSIGN_OR_RETURN(const worker::SetEnumeration sets, worker::EnumerateSets(universe, how));
    context.console.EndProgress();
    Print(universe, sets, context.console);
    RETURN_IF_ERROR(Deliver(Document(universe, sets), options.json, context.console));
    return ExitCode::kDone;
  }
  ASSIGN_OR_RETURN(const worker::Enumeration found, worker::Enumerate(universe, how));
  context.console.EndProgress();
  Print(found, context.console);
  RETURN_IF_ERROR(Deliver(Document(found), options.json, context.console));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
