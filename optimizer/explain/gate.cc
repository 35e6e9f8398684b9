#include "optimizer/explain/gate.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/core.h>

#include "core/base/xml.h"

namespace tenon::optimizer {
namespace {

// Costs are sums of doubles in varying order.
constexpr double kRounding = 1e-6;
// Rules that a summary lists by name.
constexpr std::size_t kRulesListed = 20;

GateCheck NotSlower(const Report& report, const std::optional<Report>& baseline) {
  const double limit =
      baseline ? std::min(report.cost_before_us, baseline->cost_after_us) : report.cost_before_us;
  return {
      .name = "fail-if-slower",
      .passed = report.cost_after_us <= limit * (1 + kRounding),
      .says = fmt::format(
          "{:.6g} us, not more than {:.6g} us asked for ({})", report.cost_after_us, limit,
          baseline && limit < report.cost_before_us ? "the baseline's result" : "the original")};
}

GateCheck FastEnough(const Report& report, double least) {
  const double speedup = Speedup(report);
  return {.name = "min-speedup",
          .passed = speedup >= least * (1 - kRounding),
          .says = fmt::format("{:.4g} times as fast, at least {:.4g} asked for", speedup, least)};
}

GateCheck CloseEnough(const Report& report, double most) {
  GateCheck check{.name = "max-relative-error", .passed = false, .says = ""};
  if (!report.check || report.check->outputs_compared == 0) {
    check.says = "no output was compared with the original";
    return check;
  }
  check.passed = report.check->max_relative_error <= most;
  check.says = fmt::format("{:.2g} in {} of {} outputs, at most {:.2g} asked for",
                           report.check->max_relative_error, report.check->outputs_compared,
                           report.check->outputs, most);
  return check;
}

std::string Summary(const Report& r) {
  std::string text = fmt::format(
      "cost {:.6g} us -> {:.6g} us on {}, nodes {} -> {}, {} rules applied", r.cost_before_us,
      r.cost_after_us, r.device, r.nodes_before, r.nodes_after, r.steps.size());
  if (r.check) {
    text += fmt::format(", largest relative error {:.2g}", r.check->max_relative_error);
  }
  return text;
}

std::string Case(std::string_view name, double seconds, std::string_view body) {
  return fmt::format(
      "    <testcase classname=\"tenon.optimize\" name=\"{}\" time=\"{:.3f}\">\n{}    "
      "</testcase>\n",
      base::EscapedXml(name), seconds, body);
}

std::string Suite(std::string_view model, std::string_view cases, int tests, int failures,
                  int errors, double seconds) {
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{:.3f}\"", tests,
                  failures, errors, seconds);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites {0}>\n  <testsuite name=\"tenon optimize {1}\" {0}>\n{2}  </testsuite>\n"
      "</testsuites>\n",
      counts, base::EscapedXml(model), cases);
}

// Of a table's cell: no line breaks, and bars that are none of the table.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string RulesText(const Report& report) {
  if (report.steps.empty()) return "\nNo rule of the packs makes it cheaper.\n";
  std::vector<std::pair<std::string, int>> rules;  // In order of their first use.
  std::map<std::string, std::size_t> at;
  for (const ReportStep& step : report.steps) {
    const auto [it, fresh] = at.emplace(step.rule, rules.size());
    if (fresh) rules.emplace_back(step.rule, 0);
    ++rules[it->second].second;
  }
  std::string out = "\n| rule | times |\n| --- | ---: |\n";
  for (std::size_t k = 0; k < std::min(rules.size(), kRulesListed); ++k) {
    out += fmt::format("| {} | {} |\n", Cell(rules[k].first), rules[k].second);
  }
  if (rules.size() > kRulesListed) {
    out += fmt::format("\nand {} other rules\n", rules.size() - kRulesListed);
  }
  return out;
}

}  // namespace

bool Decision::passed() const {
  return std::all_of(checks.begin(), checks.end(), [](const GateCheck& c) { return c.passed; });
}

double Speedup(const Report& report) {
  if (report.cost_after_us > 0) return report.cost_before_us / report.cost_after_us;
  return report.cost_before_us > 0 ? std::numeric_limits<double>::infinity() : 1;
}

StatusOr<Decision> Decide(const Report& report, const GateOptions& options) {
  if (options.baseline && options.baseline->device != report.device) {
    return base::InvalidArgument(
        fmt::format("the baseline is of {}, and this is {}: costs on two devices cannot be "
                    "compared; make the baseline with --device {}",
                    options.baseline->device, report.device, report.device));
  }
  Decision decision;
  if (options.fail_if_slower) decision.checks.push_back(NotSlower(report, options.baseline));
  if (options.min_speedup) decision.checks.push_back(FastEnough(report, *options.min_speedup));
  if (options.max_relative_error) {
    decision.checks.push_back(CloseEnough(report, *options.max_relative_error));
  }
  return decision;
}

std::string ToJunit(const Report& report, const Decision& decision) {
  std::string cases =
      Case("optimize", report.seconds,
           fmt::format("      <system-out>{}</system-out>\n", base::EscapedXml(Summary(report))));
  int failures = 0;
  for (const GateCheck& check : decision.checks) {
    failures += check.passed ? 0 : 1;
    const std::string_view element = check.passed ? "system-out" : "failure";
    cases += Case(check.name, 0,
                  fmt::format("      <{0}>{1}</{0}>\n", element, base::EscapedXml(check.says)));
  }
  return Suite(report.model, cases, 1 + int(decision.checks.size()), failures, 0, report.seconds);
}

std::string ToJunit(std::string_view model, const Status& error) {
  const std::string body =
      fmt::format("      <error>{}</error>\n", base::EscapedXml(base::Message(error)));
  return Suite(model, Case("optimize", 0, body), 1, 0, 1, 0);
}

std::string ToMarkdown(const Report& report, const Decision& decision) {
  std::string out = fmt::format("### `{}` on `{}`: {}\n\n", report.model, report.device,
                                decision.passed() ? "passed" : "**failed**");
  out += "| | before | after |\n| --- | ---: | ---: |\n";
  out += fmt::format("| cost | {:.6g} us | {:.6g} us |\n", report.cost_before_us,
                     report.cost_after_us);
  out += fmt::format("| nodes | {} | {} |\n", report.nodes_before, report.nodes_after);
  out += fmt::format("\n{:.4g} times as fast; searched for {:.1f} s ({})", Speedup(report),
                     report.search_seconds, report.end);
  if (report.check) {
    out += fmt::format("; largest relative error {:.2g} in {} of {} outputs",
                       report.check->max_relative_error, report.check->outputs_compared,
                       report.check->outputs);
  }
  out += ".\n";
  if (!decision.checks.empty()) out += "\n| check | | |\n| --- | --- | --- |\n";
  for (const GateCheck& check : decision.checks) {
    out += fmt::format("| `--{}` | {} | {} |\n", check.name, check.passed ? "passed" : "**failed**",
                       Cell(check.says));
  }
  out += RulesText(report);
  for (const std::string& note : report.notes) out += fmt::format("\n> {}\n", Cell(note));
  return out;
}

std::string ToMarkdown(std::string_view model, const Status& error) {
  return fmt::format("### `{}`: **error**\n\n{}\n", model, base::Message(error));
}

}  // namespace tenon::optimizer
