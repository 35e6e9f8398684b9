#include "interop/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/rules/text.h"
#include "interop/translate.h"
#include "verifier/prove.h"
#include "verifier/screen.h"

namespace tenon::interop {
namespace {

using verifier::Verdict;
using verifier::VerdictKind;

constexpr std::size_t kConditionsMax = 3;

bool Beyond(const Status& status) {
  return status.code() == absl::StatusCode::kUnimplemented ||
         status.code() == absl::StatusCode::kFailedPrecondition;
}

// Conditions with products are rarely met by chance, so the few shapes of a proof may miss what
// many find.
constexpr std::uint64_t kScreenings = 32;

std::optional<verifier::Counterexample> ScreenHard(const rules::Rule& rule) {
  for (std::uint64_t k = 1; k <= kScreenings; ++k) {
    verifier::Screened screened = verifier::Screen(rule, {.seed = verifier::SeedOf(rule) + k});
    if (screened.counterexample) return std::move(screened.counterexample);
  }
  return std::nullopt;
}

// All sets of `size` of the first n numbers, in lexicographic order.
std::vector<std::vector<std::size_t>> Subsets(std::size_t n, std::size_t size) {
  std::vector<std::vector<std::size_t>> all;
  std::vector<std::size_t> now;
  const auto extend = [&](const auto& self, std::size_t from) -> void {
    if (now.size() == size) {
      all.push_back(now);
      return;
    }
    for (std::size_t k = from; k < n; ++k) {
      now.push_back(k);
      self(self, k + 1);
      now.pop_back();
    }
  };
  extend(extend, 0);
  return all;
}

std::string Listed(const std::vector<Demand>& demands) {
  std::string text;
  for (const Demand& d : demands) text += (text.empty() ? "" : " and ") + d.text;
  return text;
}

// Looks for the fewest conditions; fills them in, or leaves `out` as it is.
Status Search(Translator& translator, const verifier::Budget& budget, Judgement& out) {
  const std::vector<Demand> must = translator.same_shape(), may = translator.candidates();
  std::set<std::string> seen;
  for (std::size_t size = must.empty() ? 1 : 0; size <= std::min(kConditionsMax, may.size());
       ++size) {
    for (const std::vector<std::size_t>& subset : Subsets(may.size(), size)) {
      std::vector<Demand> demands = must;
      for (const std::size_t k : subset) demands.push_back(may[k]);
      const StatusOr<rules::Rule> rule = translator.Build(demands);
      if (!rule.ok() && Beyond(rule.status())) continue;  // No such shape.
      if (!rule.ok()) return rule.status();
      if (!seen.insert(rules::PrintRule(*rule)).second) continue;
      ASSIGN_OR_RETURN(const Verdict verdict, verifier::Prove(*rule, budget));
      if (verdict.kind == VerdictKind::kProved) {
        out.finding = Finding::kConditional;
        for (const Demand& d : demands) out.conditions.push_back(d.text);
        out.conditioned = *rule;
        return OkStatus();
      }
      if (verdict.kind == VerdictKind::kUnproved || verdict.kind == VerdictKind::kUnknown) {
        out.undecided.push_back(Listed(demands));
      }
    }
  }
  return OkStatus();
}

StatusOr<Judgement> JudgeRank(Translator& translator, const verifier::Budget& budget) {
  Judgement out;
  out.label = translator.label();
  StatusOr<rules::Rule> accepted = translator.Build({});
  if (!accepted.ok()) {
    if (!Beyond(accepted.status())) return accepted.status();
    out.reason = base::Message(accepted.status());
    return out;
  }
  out.accepted = *std::move(accepted);
  if (out.accepted->source == out.accepted->target) {
    out.finding = Finding::kProved;
    out.reason = "both sides are one program here";
    return out;
  }
  ASSIGN_OR_RETURN(out.verdict, verifier::Prove(*out.accepted, budget));
  switch (out.verdict->kind) {
    case VerdictKind::kProved:
      out.finding = Finding::kProved;
      return out;
    case VerdictKind::kVacuous:
      out.reason = "it applies nowhere: " + out.verdict->reason;
      return out;
    case VerdictKind::kRefuted:
      out.finding = Finding::kRefuted;
      break;
    case VerdictKind::kIllFormed:
      // The conditions contain what the target requires, so only the shapes of the outputs differ.
      out.finding = Finding::kRefuted;
      break;
    case VerdictKind::kUnproved:
    case VerdictKind::kUnknown:
      // Without shapes there was none to which the tester could go.
      if (out.verdict->counters.shapes > 0) {
        out.verdict->counterexample = ScreenHard(*out.accepted);
      }
      if (out.verdict->counterexample) {
        out.verdict->kind = VerdictKind::kRefuted;
        out.verdict->reason = verifier::Print(*out.verdict->counterexample);
        out.finding = Finding::kRefuted;
      } else {
        out.reason = out.verdict->reason;
      }
      break;
  }
  RETURN_IF_ERROR(Search(translator, budget, out));
  return out;
}

}  // namespace

std::string_view NameOf(Finding finding) {
  switch (finding) {
    case Finding::kProved:
      return "proved";
    case Finding::kConditional:
      return "proved under conditions";
    case Finding::kRefuted:
      return "refuted";
    case Finding::kUnknown:
      return "unknown";
  }
  return "unknown";
}

StatusOr<Judged> Judge(const PeerRule& rule, const verifier::Budget& budget) {
  Judged judged;
  StatusOr<std::vector<Translator>> translators = Translator::ForAllRanks(rule);
  if (!translators.ok()) {
    if (!Beyond(translators.status())) return translators.status();
    Judgement none;
    none.reason = base::Message(translators.status());
    judged.ranks.push_back(std::move(none));
    return judged;
  }
  judged.finding = Finding::kProved;
  for (Translator& translator : *translators) {
    ASSIGN_OR_RETURN(Judgement judgement, JudgeRank(translator, budget));
    judged.finding = std::max(judged.finding, judgement.finding);
    judged.ranks.push_back(std::move(judgement));
  }
  return judged;
}

}  // namespace tenon::interop
