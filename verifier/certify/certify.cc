#include "verifier/certify/certify.h"

#include <fmt/core.h>

#include "core/base/bytes.h"
#include "core/rules/canonical.h"
#include "verifier/cert/check.h"
#include "verifier/certify/search.h"
#include "verifier/driver.h"
#include "verifier/screen.h"

namespace tenon::certify {
namespace {

using base::Condition;
using cert::Goal;
using cert::Ledger;

// Z3's answers, written down with their arguments. An answer without an argument becomes "not
// known", so that the proof goes on as the checker will see it.
class Recorder final : public nf::Entail {
 public:
  Recorder(const base::Symbols& symbols, std::vector<Condition> hypotheses,
           const smt::SolverLimits& limits, nf::Fault fault, std::string& out, int& missing)
      : symbols_(symbols),
        dims_end_(symbols.size()),
        hypotheses_(std::move(hypotheses)),
        solver_(symbols, hypotheses_, limits),
        fault_(fault),
        out_(out),
        missing_(missing) {}

  bool Unsat(std::span<const Condition> all) override {
    return Record(solver_.Unsat(all), all, Goal{});
  }
  bool Implies(std::span<const Condition> given, std::span<const Condition> claims) override {
    return Record(solver_.Implies(given, claims), given,
                  Goal{.kind = Goal::Kind::kClaims, .claims = claims});
  }
  nf::Balance Balanced(std::span<const Condition> given,
                       std::span<const nf::Piece> pieces) override {
    const bool yes = solver_.Balanced(given, pieces).kind == nf::Balance::Kind::kYes;
    return Of(Record(yes, given, Goal{.kind = Goal::Kind::kBalanced, .left = pieces}));
  }
  nf::Balance SameSets(std::span<const Condition> given, std::span<const nf::Piece> left,
                       std::span<const nf::Piece> right) override {
    const bool yes = solver_.SameSets(given, left, right).kind == nf::Balance::Kind::kYes;
    return Of(
        Record(yes, given, Goal{.kind = Goal::Kind::kSameSets, .left = left, .right = right}));
  }
  bool RealZero(const nf::RealProblem& problem) override {
    if (!solver_.RealZero(problem)) return No();
    Ledger ledger(Ledger::Numbers::kReals);
    const auto goal = cert::AddPremises(problem, ledger);
    const auto cases = cert::CasesOf(problem);
    if (!goal || !cases) return Missing();
    return Yes({symbols_, Goal{.kind = Goal::Kind::kZero, .zero = *goal}, *cases}, ledger);
  }

 private:
  static nf::Balance Of(bool yes) {
    return {yes ? nf::Balance::Kind::kYes : nf::Balance::Kind::kUnknown, {}};
  }

  bool No() {
    base::PutByte(out_, 0);
    return false;
  }

  bool Missing() {
    ++missing_;
    return No();
  }

  bool Yes(const cert::Question& question, Ledger& ledger) {
    const std::size_t mark = out_.size();
    base::PutByte(out_, 1);
    if (FindArgument(question, ledger, SearchLimits{.fault = fault_}, out_)) return true;
    out_.resize(mark);
    return Missing();
  }

  bool Record(bool yes, std::span<const Condition> given, const Goal& goal) {
    if (!yes) return No();
    Ledger ledger(Ledger::Numbers::kIntegers);
    if (!cert::AddPremises(given, hypotheses_, symbols_, dims_end_, ledger)) return Missing();
    return Yes({symbols_, goal, {}}, ledger);
  }

  const base::Symbols& symbols_;
  const std::size_t dims_end_;
  const std::vector<Condition> hypotheses_;
  smt::Solver solver_;
  const nf::Fault fault_;
  std::string& out_;
  int& missing_;
};

class Recording final : public verifier::Oracle {
 public:
  Recording(const smt::SolverLimits& limits, nf::Fault fault) : limits_(limits), fault_(fault) {}

  std::unique_ptr<nf::Entail> Answering(const base::Symbols& symbols,
                                        std::vector<Condition> hypotheses) override {
    return std::make_unique<Recorder>(symbols, std::move(hypotheses), limits_, fault_, answers,
                                      missing);
  }

  Answer CanApply(const rules::Rule& rule) override {
    auto found = verifier::FindSizes(rule, verifier::SeedOf(rule));
    if (!found) return Answer::kUnknown;
    witness = *std::move(found);
    const base::Symbols& symbols = rule.graph.symbols();
    witness.resize(symbols.size(), 0);
    for (std::size_t s = 1; s < symbols.size(); ++s) {
      if (symbols.kind(static_cast<base::Symbol>(s)) == base::SymbolKind::kDiv) witness[s] = 0;
    }
    return Answer::kYes;
  }

  std::string answers;
  std::vector<std::int64_t> witness;
  int missing = 0;

 private:
  const smt::SolverLimits limits_;
  const nf::Fault fault_;
};

}  // namespace

StatusOr<std::string> Certify(const rules::Rule& rule, const smt::SolverLimits& limits,
                              nf::Fault fault) {
  ASSIGN_OR_RETURN(const std::string bytes, rules::CanonicalBytes(rule));
  ASSIGN_OR_RETURN(const rules::Rule canonical, rules::DecodeRule(bytes));
  Recording oracle(limits, fault);
  verifier::Driver driver(cert::Subject(rule, canonical), cert::kLimits, oracle);
  std::optional<verifier::Driver::Outcome> outcome = driver.CheckForm();
  if (!outcome) outcome = driver.Equality();
  if (outcome->kind != verifier::VerdictKind::kProved) {
    const std::string who =
        rule.name.empty() ? "the rule" : "rule " + rule.name;  // Canonical ones.
    return base::FailedPrecondition(
        fmt::format("{} has no certificate: {} ({} answers without an argument)", who,
                    outcome->reason, oracle.missing));
  }
  std::string certificate = cert::Begin(bytes, oracle.witness) + oracle.answers;
  cert::Finish(certificate);
  const auto checked = cert::Check(rule, certificate);
  if (!checked.ok()) return base::Internal(base::Message(checked.status()));
  return certificate;
}

std::string CertifyOrDemote(const rules::Rule& rule, verifier::Verdict& verdict,
                            const smt::SolverLimits& limits) {
  if (verdict.kind != verifier::VerdictKind::kProved) return "";
  auto certificate = Certify(rule, limits);
  if (certificate.ok()) return *std::move(certificate);
  verdict.kind = verifier::VerdictKind::kUnproved;
  verdict.reason = base::Message(certificate.status());
  return "";
}

}  // namespace tenon::certify
