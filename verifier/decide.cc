#include "verifier/decide.h"

#include "verifier/driver.h"
#include "verifier/screen.h"

namespace tenon::verifier {

class Proof::Impl final : public Oracle {
 public:
  Impl(const rules::Rule& rule, const Budget& budget)
      : budget_(budget),
        driver(rule,
               {.terms = budget.terms,
                .cells = budget.cells,
                .replans = budget.replans,
                .fault = budget.fault},
               *this) {}

  std::unique_ptr<nf::Entail> Answering(const base::Symbols& symbols,
                                        std::vector<base::Condition> hypotheses) override {
    auto made = std::make_unique<smt::Solver>(symbols, std::move(hypotheses), budget_.solver);
    if (solver == nullptr) solver = made.get();
    return made;
  }

  Answer CanApply(const rules::Rule& rule) override {
    // Sizes that fulfil the conditions are the cheapest proof that there are some.
    if (FindSizes(rule, SeedOf(rule))) return Answer::kYes;
    switch (solver->HypothesesCanHold()) {
      case smt::Solver::Answer::kYes:
        return Answer::kYes;
      case smt::Solver::Answer::kNo:
        return Answer::kNo;
      case smt::Solver::Answer::kUnknown:
        break;
    }
    return Answer::kUnknown;
  }

 private:
  const Budget budget_;

 public:
  smt::Solver* solver = nullptr;  // The first one, which the driver keeps.
  Driver driver;
};

Proof::Proof(const rules::Rule& rule, const Budget& budget)
    : impl_(std::make_unique<Impl>(rule, budget)) {}

Proof::~Proof() = default;

Verdict Proof::Make(VerdictKind kind, std::string reason) const {
  Verdict v;
  v.kind = kind;
  v.reason = std::move(reason);
  if (impl_->solver != nullptr) {
    const smt::SolverCounts counts = impl_->solver->counts();
    v.counters.queries = counts.queries;
    v.counters.rlimit = counts.rlimit;
    v.counters.undecided = counts.unknown;
    v.repeatable = counts.killed == 0;
  }
  v.counters.steps = impl_->driver.steps();
  v.counters.cells = impl_->driver.cells();
  return v;
}

std::optional<Verdict> Proof::CheckForm() {
  if (auto found = impl_->driver.CheckForm()) return Make(found->kind, std::move(found->reason));
  return std::nullopt;
}

Verdict Proof::Equality() {
  Driver::Outcome outcome = impl_->driver.Equality();
  suspicion_ = impl_->driver.suspicion();
  return Make(outcome.kind, std::move(outcome.reason));
}

}  // namespace tenon::verifier
