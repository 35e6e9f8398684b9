#include "verifier/partial/partial.h"

#include <fmt/core.h>

#include "verifier/partial/gap.h"
#include "verifier/prove.h"

namespace tenon::partial {

namespace {

using verifier::VerdictKind;

// The grid needs an order of all cuts; the rule may not. Leaves out every condition of `where`
// beyond the first `given` ones without which `rule` is still proved.
Status Weaken(Correction& c, std::size_t given) {
  for (std::size_t k = c.corrected.rule.where.size(); k-- > given;) {
    rules::Rule weaker = c.corrected.rule;
    weaker.where.erase(weaker.where.begin() + static_cast<std::ptrdiff_t>(k));
    ASSIGN_OR_RETURN(verifier::Verdict verdict, verifier::Prove(weaker, {}));
    if (verdict.kind != VerdictKind::kProved) continue;
    c.corrected.rule = std::move(weaker);
    c.verdict = std::move(verdict);
  }
  return OkStatus();
}

}  // namespace

StatusOr<Found> Find(const rules::Rule& pair) {
  Found found;
  found.pair = pair;
  ASSIGN_OR_RETURN(const auto sizes, Sizes::Of(pair));
  ASSIGN_OR_RETURN(found.regions, FindRegions(found.pair, *sizes));
  found.assumed = sizes->Assumed(found.pair.graph.symbols());
  if (found.regions.all_equal()) {
    found.declined = "the programs are equal everywhere";
    return found;
  }
  if (found.regions.Count(State::kEqual) == 0) {
    found.declined = "no region is equal, so there is nothing to keep";
    return found;
  }
  auto recomputed = Recompute(found.pair, found.regions, *sizes);
  if (recomputed.ok()) {
    Correction c{"recompute", *std::move(recomputed), {}};
    ASSIGN_OR_RETURN(c.verdict, verifier::Prove(c.corrected.rule, {}));
    if (c.verdict.kind == VerdictKind::kProved) RETURN_IF_ERROR(Weaken(c, pair.where.size()));
    found.corrections.push_back(std::move(c));
  } else if (recomputed.status().code() == absl::StatusCode::kFailedPrecondition) {
    found.declined = base::Message(recomputed.status());
  } else {
    return recomputed.status();
  }
  for (const Gap& gap : GapsOf(found.pair, found.regions, *sizes)) {
    auto made = WithGap(found.pair, gap);
    if (!made.ok()) continue;
    const base::Symbols& symbols = found.pair.graph.symbols();
    Correction c{fmt::format("a gap of {} along {}", symbols.Print(gap.zeros),
                             symbols.Print(Poly::Var(gap.along))),
                 *std::move(made),
                 {}};
    ASSIGN_OR_RETURN(c.verdict, verifier::Prove(c.corrected.rule, {}));
    if (c.verdict.kind != VerdictKind::kProved) continue;
    found.corrections.push_back(std::move(c));
    break;
  }
  return found;
}

}  // namespace tenon::partial
