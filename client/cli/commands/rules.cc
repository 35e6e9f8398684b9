// tenon rules import
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/counterexample.h"
#include "client/cli/commands/simplest.h"
#include "client/cli/files.h"
#include "core/rules/text.h"
#include "interop/flexflow_file.h"
#include "interop/judge.h"
#include "interop/report.h"
#include "interop/taso_file.h"

namespace tenon::cli {
namespace {

using interop::Finding;
using interop::Judgement;

Color ColorOf(Finding finding) {
  switch (finding) {
    case Finding::kProved:
      return Color::kGreen;
    case Finding::kConditional:
    case Finding::kUnknown:
      return Color::kYellow;
    case Finding::kRefuted:
      return Color::kRed;
  }
  return Color::kPlain;
}

void Print(const interop::JudgedRule& r, std::size_t width, Console& console) {
  const Finding finding = r.judged.finding;
  std::string line =
      fmt::format("{:<{}}  {}", r.rule.name, width,
                  console.Paint(ColorOf(finding), fmt::format("{:<23}", NameOf(finding))));
  const std::string remark = Remark(r.judged);
  console.Print(remark.empty() ? line : line + "  " + remark);
  for (const Judgement& j : r.judged.ranks) {
    if (j.finding == Finding::kProved || !j.verdict || !j.verdict->counterexample) continue;
    console.Print(
        fmt::format("      as it stands{}, it is wrong:", j.label.empty() ? "" : " at " + j.label));
    PrintCounterexample(*j.verdict->counterexample, console);
  }
}

Json Strings(const std::vector<std::string>& list) {
  Json json = Json::Array();
  for (const std::string& text : list) json.Append(text);
  return json;
}

Json ToJson(const interop::JudgedRule& r) {
  Json forms = Json::Array();
  for (const Judgement& j : r.judged.ranks) {
    Json form = Json::Object({{"name", interop::NameOf(r.rule, j)},
                              {"verdict", NameOf(j.finding)},
                              {"reason", j.reason},
                              {"conditions", Strings(j.conditions)},
                              {"undecided", Strings(j.undecided)}});
    if (j.accepted) form.Set("accepted", rules::PrintRule(*j.accepted));
    if (j.verdict) form.Set("without_conditions", verifier::NameOf(j.verdict->kind));
    if (j.conditioned) form.Set("proved", rules::PrintRule(*j.conditioned));
    if (j.verdict && j.verdict->counterexample) {
      form.Set("counterexample", CounterexampleJson(*j.verdict->counterexample));
    }
    forms.Append(std::move(form));
  }
  return Json::Object({{"name", r.rule.name},
                       {"operators", interop::Print(r.rule)},
                       {"verdict", NameOf(r.judged.finding)},
                       {"forms", std::move(forms)}});
}

}  // namespace

Outcome ImportRulesCommand(Context& context, const RulesImportOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (const std::string& path : {options.out, options.markdown}) {
    if (!path.empty()) RETURN_IF_ERROR(CheckWritable(path));
  }
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const std::string bytes, ReadText(options.file));
  ASSIGN_OR_RETURN(const std::vector<interop::PeerRule> peers,
                   options.format == "taso" ? interop::ReadTaso(bytes, options.file)
                                            : interop::ReadFlexFlow(bytes, options.file));
  std::size_t width = 8;
  for (const interop::PeerRule& rule : peers) width = std::max(width, rule.name.size());

  std::vector<interop::JudgedRule> all;
  std::map<Finding, int> counts;
  Json entries = Json::Array();
  for (const interop::PeerRule& rule : peers) {
    if (context.interrupt.requested()) return absl::CancelledError("interrupted");
    context.console.Progress("import", all.size(), peers.size());
    StatusOr<interop::Judged> judged = interop::Judge(rule);
    if (!judged.ok()) {
      return base::Annotate(judged.status(), fmt::format("{}: rule {}", options.file, rule.name));
    }
    for (Judgement& j : judged->ranks) {
      if (j.verdict && j.verdict->counterexample) {
        j.verdict->counterexample = Simplest(*j.accepted, *j.verdict->counterexample);
        j.verdict->reason = verifier::Print(*j.verdict->counterexample);
      }
    }
    all.push_back({rule, *std::move(judged)});
    ++counts[all.back().judged.finding];
    Print(all.back(), width, context.console);
    entries.Append(ToJson(all.back()));
  }
  context.console.EndProgress();
  context.console.Print(fmt::format(
      "{} rule{}: {} proved, {} proved under conditions, {} refuted, {} unknown", all.size(),
      all.size() == 1 ? "" : "s", counts[Finding::kProved], counts[Finding::kConditional],
      counts[Finding::kRefuted], counts[Finding::kUnknown]));
  if (!options.out.empty()) {
    RETURN_IF_ERROR(WriteText(options.out, interop::RuleText(all)));
  }
  const std::size_t slash = options.file.find_last_of('/');
  const std::string name =
      slash == std::string::npos ? options.file : options.file.substr(slash + 1);
  if (!options.markdown.empty()) {
    RETURN_IF_ERROR(WriteText(options.markdown, interop::Markdown(all, options.format, name)));
  }
  const std::chrono::duration<double> took = Clock::now() - start;
  RETURN_IF_ERROR(Deliver(Json::Object({{"format", options.format},
                                        {"file", options.file},
                                        {"proved", counts[Finding::kProved]},
                                        {"conditional", counts[Finding::kConditional]},
                                        {"refuted", counts[Finding::kRefuted]},
                                        {"unknown", counts[Finding::kUnknown]},
                                        {"seconds", took.count()},
                                        {"rules", std::move(entries)}}),
                          options.json, context.console));
  const bool all_proved = counts[Finding::kRefuted] == 0 && counts[Finding::kUnknown] == 0;
  return all_proved ? ExitCode::kDone : ExitCode::kNo;
}

}  // namespace tenon::cli
