// tenon partial
#include <fmt/format.h>

#include <algorithm>

#include "client/cli/commands/commands.h"
#include "client/cli/files.h"
#include "core/rules/text.h"
#include "verifier/partial/partial.h"
#include "verifier/partial/picture.h"

namespace tenon::cli {
namespace {

using partial::Correction;
using partial::Found;
using partial::Region;
using partial::State;

StatusOr<std::vector<rules::ParsedRule>> ReadPairs(const PartialOptions& options) {
  std::vector<rules::ParsedRule> out;
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(const std::string text, ReadText(file));
    ASSIGN_OR_RETURN(std::vector<rules::ParsedRule> parsed, rules::ParseRules(text, file));
    for (rules::ParsedRule& p : parsed) {
      if (!options.only.empty() && p.name != options.only) continue;
      if (!p.rule.ok()) {
        return base::InvalidArgument(fmt::format("{}:{}: rule {}: {}", file, p.line, p.name,
                                                 base::Message(p.rule.status())));
      }
      out.push_back(std::move(p));
    }
  }
  if (out.empty()) {
    return base::NotFound(
        options.only.empty()
            ? std::string("there is no rule in the files")
            : fmt::format("no rule is named '{}'; leave --rule out to take all", options.only));
  }
  return out;
}

std::string PrintPiece(const partial::Axis& axis, int number, const base::Symbols& symbols) {
  const partial::Piece& piece = axis.pieces[std::size_t(number)];
  if (axis.ordered()) {
    const partial::Interval i = axis.At(number);
    return fmt::format("[{}, {})", symbols.Print(i.begin), symbols.Print(i.end));
  }
  // Positions that repeat: digit by digit.
  std::string out;
  for (std::size_t k = 0; k < piece.digits.size(); ++k) {
    out +=
        fmt::format("{}{}", out.empty() ? "" : ".",
                    piece.digits[k] >= 0 ? std::to_string(piece.digits[k])
                                         : fmt::format("[{}, {})", symbols.Print(piece.range.begin),
                                                       symbols.Print(piece.range.end)));
  }
  return out;
}

std::string PrintRegion(const Found& found, const Region& region) {
  std::string out;
  for (std::size_t axis = 0; axis < region.pieces.size(); ++axis) {
    out += fmt::format(
        "{}{}", out.empty() ? "" : " x ",
        PrintPiece(found.regions.axes[axis], region.pieces[axis], found.pair.graph.symbols()));
  }
  return out;
}

std::vector<std::string> Conditions(const std::vector<base::Condition>& conditions,
                                    const base::Symbols& symbols) {
  std::vector<std::string> out;
  for (const base::Condition& c : conditions) out.push_back(base::Print(c, symbols));
  return out;
}

bool Proved(const Found& found) {
  return found.regions.all_equal() ||
         std::any_of(found.corrections.begin(), found.corrections.end(), [](const Correction& c) {
           return c.verdict.kind == verifier::VerdictKind::kProved;
         });
}

void Print(const Found& found, Console& console) {
  const base::Symbols& symbols = found.pair.graph.symbols();
  const int unknown = found.regions.Count(State::kUnknown);
  console.Print(fmt::format("{}  {} regions: {} equal, {} unequal{}", found.pair.name,
                            found.regions.regions.size(), found.regions.Count(State::kEqual),
                            found.regions.Count(State::kUnequal),
                            unknown == 0 ? "" : fmt::format(", {} unknown", unknown)));
  if (!found.assumed.empty()) {
    console.Print(fmt::format("    where {}", fmt::join(Conditions(found.assumed, symbols), ", ")));
  }
  if (const auto& f = found.regions.filtered) {
    console.Print(fmt::format(
        "    filter: {} of {} positions, {} regions differ; a difference is missed with "
        "probability "
        "at most {}/{} = {:.2g}",
        f->positions, f->elements, std::count(f->differs.begin(), f->differs.end(), true),
        f->degree, f->prime, f->bound()));
  }
  for (const Region& r : found.regions.regions) {
    if (r.state == State::kEqual) continue;
    console.Print(fmt::format("    {:<8} {}{}", partial::NameOf(r.state), PrintRegion(found, r),
                              r.state == State::kUnknown ? ": " + r.why : ""));
  }
  for (const Correction& c : found.corrections) {
    const base::Symbols& own = c.corrected.rule.graph.symbols();
    const bool none = c.corrected.recomputed.is_constant(0);
    console.Print(fmt::format(
        "    {}: {}{}", c.how, verifier::NameOf(c.verdict.kind),
        none ? std::string(", nothing is computed anew")
             : fmt::format(", {} of {} elements are computed anew",
                           own.Print(c.corrected.recomputed), own.Print(c.corrected.elements))));
    if (!c.verdict.reason.empty()) console.Print("        " + c.verdict.reason);
    console.Print("        " +
                  rules::PrintTerm(c.corrected.rule.graph, c.corrected.rule.target[0]));
  }
  if (!found.declined.empty()) console.Print("    not recomputed: " + found.declined);
}

Json ToJson(const Found& found) {
  const base::Symbols& symbols = found.pair.graph.symbols();
  Json regions = Json::Array(), axes = Json::Array(), corrections = Json::Array();
  for (const partial::Axis& axis : found.regions.axes) {
    Json pieces = Json::Array();
    for (std::size_t k = 0; k < axis.pieces.size(); ++k) {
      pieces.Append(PrintPiece(axis, static_cast<int>(k), symbols));
    }
    axes.Append(
        Json::Object({{"extent", symbols.Print(axis.extent)}, {"pieces", std::move(pieces)}}));
  }
  for (const Region& r : found.regions.regions) {
    Json pieces = Json::Array();
    for (const int piece : r.pieces) pieces.Append(piece);
    regions.Append(Json::Object(
        {{"pieces", std::move(pieces)}, {"state", partial::NameOf(r.state)}, {"reason", r.why}}));
  }
  for (const Correction& c : found.corrections) {
    const base::Symbols& own = c.corrected.rule.graph.symbols();
    corrections.Append(Json::Object({{"how", c.how},
                                     {"verdict", verifier::NameOf(c.verdict.kind)},
                                     {"reason", c.verdict.reason},
                                     {"elements", own.Print(c.corrected.elements)},
                                     {"recomputed", own.Print(c.corrected.recomputed)},
                                     {"share", c.corrected.share},
                                     {"rule", rules::PrintRule(c.corrected.rule)}}));
  }
  Json assumed = Json::Array();
  for (const std::string& c : Conditions(found.assumed, symbols)) assumed.Append(c);
  Json filter;
  if (const auto& f = found.regions.filtered) {
    filter = Json::Object({{"positions", f->positions},
                           {"elements", f->elements},
                           {"differ", std::count(f->differs.begin(), f->differs.end(), true)},
                           {"degree", f->degree},
                           {"prime", f->prime},
                           {"bound", f->bound()}});
  }
  return Json::Object({{"name", found.pair.name},
                       {"equal", found.regions.Count(State::kEqual)},
                       {"unequal", found.regions.Count(State::kUnequal)},
                       {"unknown", found.regions.Count(State::kUnknown)},
                       {"assumed", std::move(assumed)},
                       {"filter", std::move(filter)},
                       {"axes", std::move(axes)},
                       {"regions", std::move(regions)},
                       {"corrections", std::move(corrections)},
                       {"declined", found.declined}});
}

}  // namespace

Outcome PartialCommand(Context& context, const PartialOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  if (!options.svg.empty()) RETURN_IF_ERROR(CheckWritable(options.svg));
  if (!options.out.empty()) RETURN_IF_ERROR(CheckWritable(options.out));
  ASSIGN_OR_RETURN(const std::vector<rules::ParsedRule> pairs, ReadPairs(options));
  if (!options.svg.empty() && pairs.size() != 1) {
    return base::InvalidArgument(
        fmt::format("--svg draws one pair, and there are {}; choose it with --rule", pairs.size()));
  }
  Json entries = Json::Array();
  std::string text, picture;
  bool all = true;
  for (const rules::ParsedRule& p : pairs) {
    if (context.interrupt.requested()) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(const Found found, partial::Find(*p.rule));
    Print(found, context.console);
    entries.Append(ToJson(found));
    all = all && Proved(found);
    for (const Correction& c : found.corrections) {
      if (c.verdict.kind != verifier::VerdictKind::kProved) continue;
      text += (text.empty() ? "" : "\n") + rules::PrintRule(c.corrected.rule);
    }
    picture = partial::Picture(found.pair, found.regions);
  }
  if (!options.out.empty()) RETURN_IF_ERROR(WriteText(options.out, text));
  if (!options.svg.empty()) RETURN_IF_ERROR(WriteText(options.svg, picture));
  Json document = Json::Object({{"pairs", std::move(entries)}});
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return all ? ExitCode::kDone : ExitCode::kNo;
}

}  // namespace tenon::cli
