// tenon derive
#include <fmt/format.h>

#include <algorithm>

#include "client/cli/commands/commands.h"
#include "client/cli/files.h"
#include "coordinator/reduce/derive.h"
#include "core/rules/text.h"
#include "verifier/axioms/axioms.h"

namespace tenon::cli {
namespace {

using Opinion = axioms::SecondOpinion::Opinion;

StatusOr<std::vector<rules::ParsedRule>> ReadRules(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  ASSIGN_OR_RETURN(std::vector<rules::ParsedRule> parsed, rules::ParseRules(text, file));
  for (const rules::ParsedRule& p : parsed) {
    if (!p.rule.ok()) {
      return base::InvalidArgument(
          fmt::format("{}:{}: rule {}: {}", file, p.line, p.name, base::Message(p.rule.status())));
    }
  }
  return parsed;
}

StatusOr<axioms::RuleList> ReadAxioms(const std::vector<std::string>& files) {
  if (files.empty()) return axioms::BuiltIn();
  axioms::RuleList out;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::vector<rules::ParsedRule> parsed, ReadRules(file));
    for (const rules::ParsedRule& p : parsed) {
      out.push_back(std::make_shared<const rules::Rule>(*p.rule));
    }
  }
  return out;
}

StatusOr<Opinion> Ask(axioms::SecondOpinion& second, const rules::Rule& rule,
                      std::vector<std::int64_t>& sizes) {
  auto found = reduce::DistinctSizes(rule);
  if (!found) return Opinion{.why = "no small sizes were found to which the rule applies"};
  sizes = *std::move(found);
  return second.At(rule, sizes);
}

// "0.1": operand 1 of operand 0.
std::string Place(const std::vector<std::int32_t>& place) {
  std::string out;
  for (const std::int32_t k : place) out += fmt::format("{}{}", out.empty() ? "" : ".", k);
  return out;
}

bool IsSize(const base::Symbols& symbols, base::Symbol s) {
  return symbols.kind(s) == base::SymbolKind::kDim || symbols.kind(s) == base::SymbolKind::kAttr;
}

std::string Sizes(const base::Symbols& symbols, const std::vector<std::int64_t>& sizes) {
  std::string out;
  for (base::Symbol s = 1; s < sizes.size(); ++s) {
    if (!IsSize(symbols, s)) continue;
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", symbols.Print(base::Poly::Var(s)),
                       sizes[s]);
  }
  return out;
}

void PrintSteps(const Opinion& opinion, const axioms::RuleList& axioms, Console& console) {
  for (std::size_t k = 0; k < opinion.derivations.size(); ++k) {
    const rules::Derivation& d = opinion.derivations[k];
    const rules::Replayed& r = opinion.replayed[k];
    if (opinion.derivations.size() > 1) console.Print(fmt::format("    output {}", k));
    console.Print(fmt::format("        {}", rules::PrintTerm(r.graph, r.states[0])));
    for (std::size_t n = 0; n < d.steps.size(); ++n) {
      const rules::DerivationStep& step = d.steps[n];
      const std::string at = step.place.empty() ? "" : " at operand " + Place(step.place);
      console.Print(fmt::format("{:>4}. {}{}\n     => {}", n + 1,
                                rules::StepName(axioms[std::size_t(step.rule)]->name, step.forward),
                                at, rules::PrintTerm(r.graph, r.states[n + 1])));
    }
  }
}

Json ToJson(const rules::Derivation& d, const rules::Replayed& r, const axioms::RuleList& axioms) {
  Json steps = Json::Array();
  for (std::size_t n = 0; n < d.steps.size(); ++n) {
    const rules::DerivationStep& step = d.steps[n];
    const rules::Rule& rule = *axioms[std::size_t(step.rule)];
    Json sizes = Json::Object(), inputs = Json::Object(), place = Json::Array();
    for (base::Symbol s = 1; s < step.values.size(); ++s) {
      if (!IsSize(rule.graph.symbols(), s)) continue;
      sizes.Set(rule.graph.symbols().Print(base::Poly::Var(s)), step.values[s]);
    }
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      if (step.inputs[k] == graph::kNoNode) continue;
      inputs.Set(rule.graph.inputs()[k].name, rules::PrintTerm(d.graph, step.inputs[k]));
    }
    for (const std::int32_t k : step.place) place.Append(k);
    steps.Append(Json::Object({{"axiom", rule.name},
                               {"forward", step.forward},
                               {"output", step.output},
                               {"place", std::move(place)},
                               {"sizes", std::move(sizes)},
                               {"inputs", std::move(inputs)},
                               {"term", rules::PrintTerm(r.graph, r.states[n + 1])}}));
  }
  return Json::Object(
      {{"from", rules::PrintTerm(r.graph, r.states[0])}, {"steps", std::move(steps)}});
}

Json ToJson(const std::string& file, const rules::ParsedRule& parsed, const Opinion& opinion,
            const std::vector<std::int64_t>& sizes, const axioms::RuleList& axioms) {
  Json at = Json::Object();
  for (base::Symbol s = 1; s < sizes.size(); ++s) {
    const base::Symbols& symbols = parsed.rule->graph.symbols();
    if (IsSize(symbols, s)) at.Set(symbols.Print(base::Poly::Var(s)), sizes[s]);
  }
  Json outputs = Json::Array();
  for (std::size_t k = 0; k < opinion.derivations.size(); ++k) {
    outputs.Append(ToJson(opinion.derivations[k], opinion.replayed[k], axioms));
  }
  return Json::Object({{"file", file},
                       {"line", parsed.line},
                       {"name", parsed.name},
                       {"derived", opinion.derived()},
                       {"reason", opinion.why},
                       {"sizes", std::move(at)},
                       {"outputs", std::move(outputs)}});
}

}  // namespace

Outcome DeriveCommand(Context& context, const DeriveOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(axioms::RuleList list, ReadAxioms(options.axioms));
  axioms::SecondOpinion second(std::move(list));
  Json entries = Json::Array();
  int derived = 0, asked = 0;
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(const std::vector<rules::ParsedRule> parsed, ReadRules(file));
    for (const rules::ParsedRule& p : parsed) {
      if (context.interrupt.requested()) return absl::CancelledError("interrupted");
      if (!options.only.empty() && p.name != options.only) continue;
      ++asked;
      std::vector<std::int64_t> sizes;
      ASSIGN_OR_RETURN(const Opinion opinion, Ask(second, *p.rule, sizes));
      derived += opinion.derived() ? 1 : 0;
      std::size_t steps = 0;
      for (const rules::Derivation& d : opinion.derivations) steps += d.steps.size();
      const std::string at = Sizes(p.rule->graph.symbols(), sizes);
      context.console.Print(
          opinion.derived() ? fmt::format("{}  derived in {} step{}{}", p.name, steps,
                                          steps == 1 ? "" : "s", at.empty() ? "" : ", with " + at)
                            : fmt::format("{}  not derived: {}", p.name, opinion.why));
      if (options.steps) PrintSteps(opinion, second.axioms(), context.console);
      entries.Append(ToJson(file, p, opinion, sizes, second.axioms()));
    }
  }
  if (asked == 0) {
    return base::NotFound(
        options.only.empty()
            ? std::string("there is no rule in the files")
            : fmt::format("no rule is named '{}'; leave --rule out to take all", options.only));
  }
  context.console.Print(
      fmt::format("{} of {} rules derived from {} axioms", derived, asked, second.axioms().size()));
  Json document = Json::Object({{"axioms", second.axioms().size()},
                                {"derived", derived},
                                {"not_derived", asked - derived},
                                {"rules", std::move(entries)}});
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return derived == asked ? ExitCode::kDone : ExitCode::kNo;
}

}  // namespace tenon::cli
