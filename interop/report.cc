#include "interop/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/rules/text.h"

namespace tenon::interop {
namespace {

using verifier::VerdictKind;

std::string Joined(const std::vector<std::string>& parts, std::string_view between) {
  return fmt::format("{}", fmt::join(parts, between));
}

std::string Text(rules::Rule rule, const std::string& name, rules::Expect expect) {
  rule.name = name;
  rule.expect = expect;
  return rules::PrintRule(rule) + "\n";
}

rules::Expect Expected(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kProved:
      return rules::Expect::kProved;
    case VerdictKind::kIllFormed:
      return rules::Expect::kIllFormed;
    case VerdictKind::kVacuous:
      return rules::Expect::kVacuous;
    case VerdictKind::kRefuted:  // Maybe by more shapes than a proof tries.
    case VerdictKind::kUnproved:
    case VerdictKind::kUnknown:
      return rules::Expect::kNotProved;
  }
  return rules::Expect::kNotProved;
}

// Tables end cells with a bar.
std::string Cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

const Judgement& Worst(const Judged& judged) {
  return *std::max_element(
      judged.ranks.begin(), judged.ranks.end(),
      [](const Judgement& a, const Judgement& b) { return a.finding < b.finding; });
}

// "rank 1, 2, 3, 4": the ranks at which a rule was judged.
std::string Ranks(const Judged& judged) {
  std::vector<std::string> ranks;
  for (const Judgement& j : judged.ranks) {
    if (!j.label.empty()) ranks.push_back(j.label.substr(std::string_view("rank ").size()));
  }
  return ranks.empty() ? "" : "ranks " + Joined(ranks, ", ");
}

}  // namespace

std::string NameOf(const PeerRule& rule, const Judgement& judgement) {
  std::string label = judgement.label;
  std::erase_if(label, [](char c) { return c == ' '; });
  std::replace(label.begin(), label.end(), ',', '-');
  return label.empty() ? rule.name : fmt::format("{}.{}", rule.name, label);
}

std::string RuleText(const std::vector<JudgedRule>& rules) {
  std::string out;
  for (const auto& [rule, judged] : rules) {
    out += fmt::format("# {}: {}\n", rule.name, Print(rule));
    for (const Judgement& j : judged.ranks) {
      const std::string name = NameOf(rule, j);
      if (j.conditioned) {
        out += fmt::format("# Needs: {}.\n", Joined(j.conditions, " and "));
        out += Text(*j.conditioned, name, rules::Expect::kProved);
        out += Text(*j.accepted, name + ".unconditional", Expected(j.verdict->kind));
      } else if (j.accepted && j.verdict) {
        out += Text(*j.accepted, name, Expected(j.verdict->kind));
      } else {
        out += fmt::format("# {}: {}: {}.\n\n", name, NameOf(j.finding), j.reason);
      }
    }
  }
  return out;
}

std::string Remark(const Judged& judged) {
  const Judgement& worst = Worst(judged);
  std::string text;
  switch (worst.finding) {
    case Finding::kProved:
      return worst.reason;
    case Finding::kConditional:
      text = Joined(worst.conditions, " and ");
      break;
    case Finding::kUnknown:
      text = worst.reason;
      break;
    case Finding::kRefuted:
      text = worst.verdict ? worst.verdict->reason : worst.reason;
      break;
  }
  return worst.label.empty() ? text : fmt::format("{}: {}", worst.label, text);
}

std::string Markdown(const std::vector<JudgedRule>& rules, std::string_view format,
                     std::string_view file) {
  std::map<Finding, int> counts;
  for (const JudgedRule& r : rules) ++counts[r.judged.finding];
  std::string out = fmt::format(
      "# The rules of `{1}`, judged\n\n"
      "Written by `tenon rules import --format {0} {1} --markdown PAGE`; what the verdicts mean "
      "and "
      "what the\nimport assumes is in [formats/peers.md](formats/peers.md).\n\n",
      format, file);
  out += fmt::format(
      "{} rules: {} proved, {} proved under conditions that the file does not state, {} refuted, "
      "{} "
      "unknown.\n\n",
      rules.size(), counts[Finding::kProved], counts[Finding::kConditional],
      counts[Finding::kRefuted], counts[Finding::kUnknown]);
  out += "| rule | operators | verdict | conditions, remarks |\n| --- | --- | --- | --- |\n";
  for (const auto& [rule, judged] : rules) {
    std::vector<std::string> remarks;
    for (std::string text : {Ranks(judged), Remark(judged)}) {
      if (!text.empty()) remarks.push_back(std::move(text));
    }
    out += fmt::format("| {} | `{}` | {} | {} |\n", rule.name, Cell(Print(rule)),
                       NameOf(judged.finding), Cell(Joined(remarks, "; ")));
  }
  std::string details;
  for (const auto& [rule, judged] : rules) {
    for (const Judgement& j : judged.ranks) {
      if (j.finding == Finding::kProved) continue;
      details += fmt::format("\n### {}\n\n", NameOf(rule, j));
      if (j.verdict && j.verdict->counterexample) {
        details += fmt::format("Refuted without conditions: {}.\n",
                               verifier::Print(*j.verdict->counterexample));
      } else if (j.verdict) {
        details += fmt::format("Without conditions: {}: {}.\n", verifier::NameOf(j.verdict->kind),
                               j.verdict->reason);
      } else {
        details += fmt::format("Not understood: {}.\n", j.reason);
      }
      if (j.conditioned) {
        details += fmt::format("Proved where {}:\n\n```\n{}```\n", Joined(j.conditions, " and "),
                               rules::PrintRule(*j.conditioned));
      }
      for (const std::string& open : j.undecided) {
        details += fmt::format("\nNeither proved nor refuted where {}.\n", open);
      }
    }
  }
  if (!details.empty()) out += "\n## What is not proved as it stands\n" + details;
  return out;
}

}  // namespace tenon::interop
