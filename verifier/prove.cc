#include "verifier/prove.h"

#include <fmt/core.h>

#include "verifier/screen.h"

namespace tenon::verifier {
namespace {

Verdict Refuted(Counterexample c, const Counters& counters) {
  Verdict v;
  v.kind = VerdictKind::kRefuted;
  v.reason = Print(c);
  v.counterexample = std::move(c);
  v.counters = counters;
  return v;
}

}  // namespace

StatusOr<Verdict> Prove(const rules::Rule& rule, const Budget& budget) {
  Proof proof(rule, budget);
  if (auto verdict = proof.CheckForm()) return *std::move(verdict);
  const ScreenOptions options{.shapes = budget.shapes, .seed = SeedOf(rule)};
  Screened screened = Screen(rule, options);
  if (screened.counterexample && !budget.cross_check) {
    Counters counters;
    counters.shapes = screened.shapes;
    return Refuted(*std::move(screened.counterexample), counters);
  }
  Verdict verdict = proof.Equality();
  verdict.counters.shapes = screened.shapes;
  if (screened.counterexample) {
    if (verdict.kind == VerdictKind::kProved) {
      return base::Internal(
          fmt::format("rule {}: proved for all shapes, yet refuted at {}; prover or evaluator is "
                      "wrong",
                      rule.name, Print(*screened.counterexample)));
    }
    return Refuted(*std::move(screened.counterexample), verdict.counters);
  }
  if (verdict.kind == VerdictKind::kUnproved && !proof.suspicion().empty()) {
    if (auto found = TestAt(rule, proof.suspicion(), options)) {
      return Refuted(*std::move(found), verdict.counters);
    }
  }
  return verdict;
}

bool Meets(rules::Expect expect, VerdictKind kind) {
  switch (expect) {
    case rules::Expect::kNone:
      return true;
    case rules::Expect::kProved:
      return kind == VerdictKind::kProved;
    case rules::Expect::kRefuted:
      return kind == VerdictKind::kRefuted;
    case rules::Expect::kNotProved:
      return kind != VerdictKind::kProved;
    case rules::Expect::kIllFormed:
      return kind == VerdictKind::kIllFormed;
    case rules::Expect::kVacuous:
      return kind == VerdictKind::kVacuous;
  }
  return false;
}

}  // namespace tenon::verifier
