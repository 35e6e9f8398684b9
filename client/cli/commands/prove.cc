// tenon prove
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/counterexample.h"
#include "client/cli/commands/simplest.h"
#include "client/cli/files.h"
#include "core/rules/text.h"
#include "verifier/prove.h"

namespace tenon::cli {
namespace {

using verifier::Verdict;
using verifier::VerdictKind;

// A rule of a file, or why its text is none.
struct Task {
  std::string file;
  rules::ParsedRule parsed;
};

StatusOr<std::vector<Task>> ReadTasks(const ProveOptions& options) {
  std::vector<Task> tasks;
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(const std::string text, ReadText(file));
    ASSIGN_OR_RETURN(std::vector<rules::ParsedRule> parsed, rules::ParseRules(text, file));
    if (parsed.empty()) {
      return base::InvalidArgument(fmt::format(
          "{}: there is no rule in it; docs/formats/rules.md shows how to write one", file));
    }
    for (rules::ParsedRule& rule : parsed) {
      if (options.only.empty() || rule.name == options.only) {
        tasks.push_back({file, std::move(rule)});
      }
    }
  }
  if (tasks.empty()) {
    return base::NotFound(
        fmt::format("no rule is named '{}'; leave --rule out to prove all", options.only));
  }
  return tasks;
}

// Who writes a rule down without an `expect` believes it.
rules::Expect Expected(const Task& task) {
  return task.parsed.expect == rules::Expect::kNone ? rules::Expect::kProved : task.parsed.expect;
}

// Writes the questions about one rule to a folder. A failure is kept for the end.
class Obligations {
 public:
  // Nothing is written where `folder` is empty.
  Obligations(const std::string& folder, std::size_t task, std::string rule)
      : folder_(folder), task_(task), rule_(std::move(rule)) {
    std::replace(rule_.begin(), rule_.end(), '/', '_');  // The names of rules may have them.
  }

  smt::OnObligation Sink() {
    if (folder_.empty()) return {};
    return [this](const smt::Obligation& told) {
      const std::string name = fmt::format("{:04}-{}-{:04}.smt2", task_, rule_, ++count_);
      if (status_.ok()) status_ = WriteText(folder_ + "/" + name, told.text);
    };
  }
  const Status& status() const { return status_; }

 private:
  const std::string folder_;
  const std::size_t task_;
  std::string rule_;
  int count_ = 0;
  Status status_;
};

// Makes the folder, if one is wanted.
Status CheckFolder(const std::string& folder) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return base::InvalidArgument(fmt::format(
      "{}: cannot be made a folder: {}; give another to --smt-lib", folder, error.message()));
}

StatusOr<Verdict> Judge(const Task& task, const ProveOptions& options, std::size_t number) {
  if (task.parsed.rule.ok()) {
    Obligations obligations(options.smt_lib, number, task.parsed.name);
    verifier::Budget budget;
    budget.solver.on_obligation = obligations.Sink();
    StatusOr<Verdict> verdict = verifier::Prove(*task.parsed.rule, budget);
    RETURN_IF_ERROR(obligations.status());
    return verdict;
  }
  Verdict verdict;
  verdict.kind = VerdictKind::kIllFormed;
  verdict.reason = base::Message(task.parsed.rule.status());
  return verdict;
}

Color ColorOf(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kProved:
      return Color::kGreen;
    case VerdictKind::kRefuted:
      return Color::kRed;
    case VerdictKind::kUnproved:
    case VerdictKind::kUnknown:
    case VerdictKind::kIllFormed:
    case VerdictKind::kVacuous:
      return Color::kYellow;
  }
  return Color::kPlain;
}

Json ToJson(const Task& task, const Verdict& verdict, bool as_expected, double seconds) {
  Json entry = Json::Object({{"file", task.file},
                             {"line", task.parsed.line},
                             {"name", task.parsed.name},
                             {"verdict", verifier::NameOf(verdict.kind)},
                             {"reason", verdict.reason}});
  if (task.parsed.expect != rules::Expect::kNone) {
    entry.Set("expect", rules::NameOf(task.parsed.expect));
  }
  entry.Set("as_expected", as_expected);
  entry.Set("seconds", seconds);
  entry.Set("shapes", verdict.counters.shapes);
  entry.Set("queries", verdict.counters.queries);
  entry.Set("rlimit", verdict.counters.rlimit);
  if (verdict.counterexample)
    entry.Set("counterexample", CounterexampleJson(*verdict.counterexample));
  return entry;
}

void Print(const Task& task, const Verdict& verdict, bool as_expected, double seconds,
           std::size_t width, Console& console) {
  const std::string verdict_text = fmt::format("{:<10}", verifier::NameOf(verdict.kind));
  std::string line =
      fmt::format("{:<{}}  {} {:>9}", task.parsed.name, width,
                  console.Paint(ColorOf(verdict.kind), verdict_text), Duration(seconds));
  if (!as_expected) {
    line += console.Paint(Color::kRed, fmt::format("  expected {}", rules::NameOf(Expected(task))));
  }
  console.Print(line);
  if (verdict.counterexample) {
    PrintCounterexample(*verdict.counterexample, console);
  } else if (!verdict.reason.empty()) {
    console.Print(fmt::format("      {}", verdict.reason));
  }
}

// The field of the summary that counts a kind.
std::string FieldOf(VerdictKind kind) {
  std::string name = verifier::NameOf(kind);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

Outcome ProveCommand(Context& context, const ProveOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  RETURN_IF_ERROR(CheckFolder(options.smt_lib));
  ASSIGN_OR_RETURN(const std::vector<Task> tasks, ReadTasks(options));
  std::size_t width = 12;
  for (const Task& task : tasks) width = std::max(width, task.parsed.name.size());

  const auto start = Clock::now();
  std::map<VerdictKind, int> counts;
  int unexpected = 0;
  Json entries = Json::Array();
  const std::string* file = nullptr;
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    if (context.interrupt.requested()) return absl::CancelledError("interrupted");
    const Task& task = tasks[k];
    if (options.files.size() > 1 && (file == nullptr || *file != task.file)) {
      context.console.Print(context.console.Paint(Color::kDim, task.file));
      file = &task.file;
    }
    context.console.Progress("prove", k, tasks.size());
    const auto rule_start = Clock::now();
    StatusOr<Verdict> verdict = Judge(task, options, k);
    if (!verdict.ok()) {
      return base::Annotate(verdict.status(), fmt::format("{}:{}: rule {}", task.file,
                                                          task.parsed.line, task.parsed.name));
    }
    const double seconds = seconds_since(rule_start);
    if (verdict->counterexample) {
      verdict->counterexample = Simplest(*task.parsed.rule, *verdict->counterexample);
    }
    const bool as_expected = verifier::Meets(Expected(task), verdict->kind);
    ++counts[verdict->kind];
    unexpected += as_expected ? 0 : 1;
    Print(task, *verdict, as_expected, seconds, width, context.console);
    entries.Append(ToJson(task, *verdict, as_expected, seconds));
  }
  context.console.EndProgress();

  Json document = Json::Object();
  std::string summary;
  for (const VerdictKind kind :
       {VerdictKind::kProved, VerdictKind::kRefuted, VerdictKind::kUnproved, VerdictKind::kUnknown,
        VerdictKind::kIllFormed, VerdictKind::kVacuous}) {
    document.Set(FieldOf(kind), counts[kind]);
    if (counts[kind] > 0) summary += fmt::format(", {} {}", counts[kind], verifier::NameOf(kind));
  }
  document.Set("unexpected", unexpected);
  document.Set("seconds", seconds_since(start));
  document.Set("rules", std::move(entries));
  context.console.Print(
      fmt::format("{} rule{}{}; {}", tasks.size(), tasks.size() == 1 ? "" : "s", summary,
                  unexpected == 0 ? std::string("all as expected")
                                  : fmt::format("{} not as expected", unexpected)));
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return unexpected == 0 ? ExitCode::kDone : ExitCode::kNo;
}

}  // namespace tenon::cli
