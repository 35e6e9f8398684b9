#include "verifier/cert/check.h"

#include <fmt/core.h>

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/pack/pack.h"
#include "core/rules/canonical.h"
#include "verifier/cert/argument.h"
#include "verifier/hypotheses.h"

namespace tenon::cert {
namespace {

constexpr std::uint8_t kFormat = 1;

// Answers from a certificate.
class Replay final : public nf::Entail {
 public:
  Replay(const base::Symbols& symbols, std::vector<Condition> hypotheses, base::ByteReader& in,
         Checked& counts, nf::Fault fault)
      : symbols_(symbols),
        dims_end_(symbols.size()),
        hypotheses_(std::move(hypotheses)),
        in_(in),
        counts_(counts),
        fault_(fault) {}

  bool Unsat(std::span<const Condition> all) override { return Answer(all, Goal{}); }
  bool Implies(std::span<const Condition> given, std::span<const Condition> claims) override {
    return Answer(given, Goal{.kind = Goal::Kind::kClaims, .claims = claims});
  }
  nf::Balance Balanced(std::span<const Condition> given,
                       std::span<const nf::Piece> pieces) override {
    return Of(Answer(given, Goal{.kind = Goal::Kind::kBalanced, .left = pieces}));
  }
  nf::Balance SameSets(std::span<const Condition> given, std::span<const nf::Piece> left,
                       std::span<const nf::Piece> right) override {
    return Of(Answer(given, Goal{.kind = Goal::Kind::kSameSets, .left = left, .right = right}));
  }
  bool RealZero(const nf::RealProblem& problem) override {
    if (!Yes()) return false;
    Ledger ledger(Ledger::Numbers::kReals, fault_);
    const auto goal = cert::AddPremises(problem, ledger);
    const auto cases = CasesOf(problem);
    if (!goal || !cases) return Overflow();
    return CheckArgument({symbols_, Goal{.kind = Goal::Kind::kZero, .zero = *goal}, *cases}, ledger,
                         in_);
  }

 private:
  static nf::Balance Of(bool yes) {
    return {yes ? nf::Balance::Kind::kYes : nf::Balance::Kind::kUnknown, {}};
  }

  bool Overflow() {
    in_.Fail("a number that leaves 64 bits");
    return false;
  }

  // Whether the next answer is "yes".
  bool Yes() {
    ++counts_.answers;
    if (in_.Count(1, "an unknown answer") == 0) return false;
    ++counts_.arguments;
    return in_.ok();
  }

  bool Answer(std::span<const Condition> given, const Goal& goal) {
    if (!Yes()) return false;
    if (fault_ == nf::Fault::kCheckNoArgument) return true;
    Ledger ledger(Ledger::Numbers::kIntegers, fault_);
    if (!AddPremises(given, hypotheses_, symbols_, dims_end_, ledger)) return Overflow();
    return CheckArgument({symbols_, goal, {}}, ledger, in_);
  }

  const base::Symbols& symbols_;
  const std::size_t dims_end_;  // No dims are made later.
  const std::vector<Condition> hypotheses_;
  base::ByteReader& in_;
  Checked& counts_;
  const nf::Fault fault_;
};

class FromCertificate final : public verifier::Oracle {
 public:
  FromCertificate(base::ByteReader& in, nf::Fault fault) : in_(in), fault_(fault) {}

  std::unique_ptr<nf::Entail> Answering(const base::Symbols& symbols,
                                        std::vector<Condition> hypotheses) override {
    return std::make_unique<Replay>(symbols, std::move(hypotheses), in_, counts, fault_);
  }

  // The witness: a value for each symbol of the rule.
  Answer CanApply(const rules::Rule& rule) override {
    const base::Symbols& symbols = rule.graph.symbols();
    const std::uint64_t count = in_.Count(symbols.size() - 1, "too many sizes");
    if (count != symbols.size() - 1) in_.Fail("too few sizes");
    std::vector<std::int64_t> values{0};
    for (std::uint64_t k = 0; k < count && in_.ok(); ++k) values.push_back(in_.Signed());
    if (!in_.ok()) return Answer::kUnknown;
    for (std::size_t s = 1; s < symbols.size(); ++s) {
      const base::SymbolKind kind = symbols.kind(static_cast<Symbol>(s));
      const bool ok = kind == base::SymbolKind::kDim   ? values[s] >= 1
                      : kind == base::SymbolKind::kDiv ? values[s] == 0
                                                       : true;
      if (!ok) in_.Fail("sizes that are none");
    }
    for (const Condition& c : verifier::ConditionsOf(rule, rule.source)) {
      if (base::Holds(c, symbols, values) != true && fault_ != nf::Fault::kCheckNoWitness) {
        in_.Fail("sizes to which the rule does not apply");
      }
    }
    return in_.ok() ? Answer::kYes : Answer::kUnknown;
  }

  Checked counts;

 private:
  base::ByteReader& in_;
  const nf::Fault fault_;
};

}  // namespace

bool AddPremises(std::span<const Condition> given, std::span<const Condition> hypotheses,
                 const base::Symbols& symbols, std::size_t dims_end, Ledger& ledger) {
  bool ok = true;
  for (const Condition& c : given) ok = ok && ledger.Add(c);
  for (const Condition& c : hypotheses) ok = ok && ledger.Add(c);
  for (std::size_t s = 1; s < dims_end; ++s) {
    const auto symbol = static_cast<Symbol>(s);
    if (symbols.kind(symbol) == base::SymbolKind::kDim)
      ok = ok && ledger.Add(Poly::Var(symbol) - 1);
  }
  return ok;
}

const rules::Rule& Subject(const rules::Rule& rule, const rules::Rule& canonical) {
  return canonical.source == canonical.target ? rule : canonical;
}

std::string Begin(std::string_view rule_bytes, const std::vector<std::int64_t>& witness) {
  std::string out;
  base::PutByte(out, kFormat);
  base::PutVarint(out, pack::kSemanticsVersion);
  base::PutString(out, rule_bytes);
  base::PutVarint(out, witness.size() - 1);
  for (std::size_t k = 1; k < witness.size(); ++k) base::PutSigned(out, witness[k]);
  return out;
}

void Finish(std::string& bytes) {
  const std::uint32_t checksum = base::Crc32c(bytes);
  for (int k = 0; k < 4; ++k) {
    base::PutByte(bytes, static_cast<std::uint8_t>(checksum >> (8 * k)));
  }
}

StatusOr<Checked> Check(const rules::Rule& rule, std::string_view certificate, nf::Fault fault) {
  const auto damaged = [&](std::string_view why) {
    return base::DataLoss(fmt::format("certificate of rule {}: {}", rule.name, why));
  };
  const auto refused = [&](std::string_view why) {
    return base::FailedPrecondition(fmt::format("certificate of rule {}: {}", rule.name, why));
  };
  if (certificate.size() > kCertificateBytesMax) return damaged("more than 512 KiB");
  if (certificate.size() < 4) return damaged("the bytes end early");
  std::string body(certificate.substr(0, certificate.size() - 4));
  Finish(body);
  if (body != certificate && fault != nf::Fault::kCheckNoChecksum)
    return damaged("the checksum does not fit");
  base::ByteReader in(certificate.substr(0, certificate.size() - 4));
  if (in.Byte() != kFormat) return refused("of another format");
  const std::uint64_t semantics = in.Varint();
  if (semantics != pack::kSemanticsVersion && fault != nf::Fault::kCheckAnySemantics) {
    return refused("of another semantics version");
  }
  const std::string_view rule_bytes = in.String();
  if (!in.ok()) return damaged(in.error());
  ASSIGN_OR_RETURN(const std::string own, rules::CanonicalBytes(rule));
  if (own != rule_bytes && fault != nf::Fault::kCheckAnyRule) return refused("of another rule");
  ASSIGN_OR_RETURN(const rules::Rule canonical, rules::DecodeRule(own));

  FromCertificate oracle(in, fault);
  verifier::DriverLimits limits = kLimits;
  limits.fault = fault;
  verifier::Driver driver(Subject(rule, canonical), limits, oracle);
  const std::optional<verifier::Driver::Outcome> form = driver.CheckForm();
  if (!in.ok()) return damaged(in.error());
  if (form) return refused(form->reason);
  const verifier::Driver::Outcome outcome = driver.Equality();
  if (fault != nf::Fault::kCheckNoEnd) in.End();
  if (!in.ok()) return damaged(in.error());
  if (outcome.kind != verifier::VerdictKind::kProved) return refused(outcome.reason);
  return oracle.counts;
}

}  // namespace tenon::cert
