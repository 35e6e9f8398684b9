// tenon generate
#include <fmt/format.h>

#include <chrono>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/enumeration.h"
#include "client/cli/commands/packs.h"
#include "client/cli/files.h"
#include "client/cli/generate.h"
#include "client/cli/universes.h"

namespace tenon::cli {
namespace {

std::string_view StageOf(std::string_view phase) {
  if (phase == "candidates") return "lift and derive: candidates";
  if (phase == "proofs") return "prove: candidates";
  if (phase == "prune") return "prune: rules that others derive";
  if (phase == "pairs") return "check: pairs of the universe, each alone";
  if (phase == "joins") return "join: rules with several outputs";
  return EnumerationStage(phase);
}

Json Document(const Generated& made, const registry::PackFile& pack, const std::string& file) {
  const GenerateReport& r = made.report;
  Json by_size = Json::Array(), rejected = Json::Array(), underivable = Json::Array();
  for (const std::uint64_t count : r.graphs_by_size) by_size.Append(count);
  for (const Rejected& form : r.rejected) {
    rejected.Append(
        Json::Object({{"verdict", form.verdict}, {"reason", form.reason}, {"rule", form.rule}}));
  }
  for (const std::string& pair : r.underivable_examples) underivable.Append(pair);
  return Json::Object({
      {"pack", file},
      {"name", pack.name},
      {"version", pack::ToString(pack.version)},
      {"address", pack.address},
      {"mode", r.mode},
      {"graphs", r.graphs},
      {"graphs_by_size", std::move(by_size)},
      {"classes", r.classes},
      {"equivalent_pairs", r.equivalent_pairs},
      {"candidates", r.candidates},
      {"proved", r.proved},
      {"refuted", r.refuted},
      {"unproved", r.unproved},
      {"rules", r.rules},
      {"forms", r.forms},
      {"multi_output_rules", r.multi_output_rules},
      {"pairs_checked", r.pairs_checked},
      {"underivable", r.underivable},
      {"rounds", r.rounds},
      {"seconds", r.seconds},
      {"enumerate_seconds", r.enumerate_seconds},
      {"reduce_seconds", r.reduce_seconds},
      {"proof_seconds", r.proof_seconds},
      {"graphs_per_second", r.graphs_per_second},
      {"peak_rss_bytes", r.peak_rss_bytes},
      {"rejected", std::move(rejected)},
      {"underivable_examples", std::move(underivable)},
  });
}

void Print(const Generated& made, const registry::PackFile& pack, const std::string& file,
           bool rejected, Console& console) {
  const GenerateReport& r = made.report;
  const auto line = [&](std::string_view what, std::uint64_t count, const std::string& note) {
    console.Print(fmt::format("  {:<24}{:>12}{}{}", what, Grouped(count), note.empty() ? "" : "  ",
                              console.Paint(Color::kDim, note)));
  };
  console.Print(fmt::format("{}, {}", console.Paint(Color::kBold, pack.reference()), r.mode));
  line("graphs", r.graphs, fmt::format("in {}", Duration(r.enumerate_seconds)));
  line("classes (functions)", r.classes, "");
  line("equivalent pairs", r.equivalent_pairs, "");
  line("candidates", r.candidates, fmt::format("proofs took {}", Duration(r.proof_seconds)));
  line("  proved", r.proved, "");
  line("  refuted", r.refuted, "");
  line("  unproved", r.unproved, "");
  line("rules", r.rules,
       fmt::format("in {} forms{}", r.forms,
                   r.multi_output_rules > 0
                       ? fmt::format("; {} have several outputs", r.multi_output_rules)
                       : ""));
  line("underivable pairs", r.underivable,
       r.pairs_checked < r.equivalent_pairs
           ? fmt::format("of {} checked: each class in full and a sample", Grouped(r.pairs_checked))
           : "");
  console.Print(fmt::format("  wrote {} in {}, {} at most", file, Duration(r.seconds),
                            Bytes(r.peak_rss_bytes)));
  for (const std::string& pair : r.underivable_examples) {
    console.Print(fmt::format("  underivable: {}", pair));
  }
  if (!rejected) return;
  for (const Rejected& form : r.rejected) {
    console.Print(fmt::format("# {}: {}\n{}", form.verdict, form.reason, form.rule));
  }
}

}  // namespace

Outcome GenerateCommand(Context& context, const GenerateCommandOptions& options) {
  RETURN_IF_ERROR(CheckWritable(options.out));
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const graph::Universe universe, OpenUniverse(options.enumeration.universe));
  registry::PackFile pack;
  RETURN_IF_ERROR(
      ParsePackReference(options.name.empty() ? DefaultPackName(universe) : options.name, pack));
  ASSIGN_OR_RETURN(const registry::SigningKey key, ReadSigningKey(options.key));

  const worker::EnumerateOptions enumeration = ToWorkerOptions(options.enumeration, context);
  GenerateOptions how;
  how.max_operators = enumeration.max_operators;
  how.mode = enumeration.mode;
  how.shards = enumeration.shards;
  how.memory_limit_bytes = enumeration.memory_limit_bytes;
  how.time_limit_seconds = enumeration.time_limit_seconds;
  how.progress = [&context](const GenerateProgress& progress) {
    context.console.Progress(StageOf(progress.phase), progress.done, progress.total);
    return !context.interrupt.requested();
  };
  ASSIGN_OR_RETURN(Generated made, Generate(universe, how));
  context.console.EndProgress();

  pack.content = made.content;
  pack.provenance = {.job = "tenon generate",
                     .code_version = TENON_VERSION,
                     .time = std::chrono::duration_cast<std::chrono::seconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count()};
  ASSIGN_OR_RETURN(pack.address, registry::AddressOf(pack.content));
  RETURN_IF_ERROR(registry::WritePackFile(options.out, pack, &key));
  Print(made, pack, options.out, options.rejected, context.console);
  RETURN_IF_ERROR(Deliver(Document(made, pack, options.out), options.json, context.console));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
