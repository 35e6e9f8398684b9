// The checker of certificates: proofs that anyone can check, without a solver.
//
// A certificate is the list of the answers that a proof relied on, each with an argument
// (docs/formats/certificate.md). The checker runs the proof again (verifier/driver.h); where the
// prover asked Z3, the checker reads the next answer, and believes it only if its argument shows
// what was asked at this very place. Trusted are the operators, the normal form and the driver, and
// a ledger that adds and multiplies polynomials; neither Z3 nor the search for arguments is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/cert/ledger.h"
#include "verifier/driver.h"

namespace tenon::cert {

// Part of what a certificate means: another limit may ask other questions.
inline constexpr verifier::DriverLimits kLimits{};
inline constexpr std::size_t kCertificateBytesMax = std::size_t{1} << 19;

struct Checked {
  int answers = 0;    // Questions that the proof asked ..
  int arguments = 0;  // .. and those of them that were answered "yes", and shown.
};

// OK: `certificate` proves `rule` for all sizes that it allows. DataLoss: its bytes are no
// certificate, or an argument is wrong. FailedPrecondition: of another rule or semantics version,
// or it proves nothing. Thread-safe; a certificate takes about a millisecond.
// `fault` is for the test of the tests only.
StatusOr<Checked> Check(const rules::Rule& rule, std::string_view certificate,
                        nf::Fault fault = nf::Fault::kNone);

// What is proved for a rule with that canonical form: the form, or, when its sides are one graph
// because they differ in the order of commutative operands only, the rule as it is written. (No
// pack holds such a rule: a pack holds canonical forms.)
const rules::Rule& Subject(const rules::Rule& rule, const rules::Rule& canonical);

// The parts around the answers, for who makes certificates: everything before the answers, and the
// checksum after.
std::string Begin(std::string_view rule_bytes, const std::vector<std::int64_t>& witness);
void Finish(std::string& bytes);

// The facts that a question about integers starts from, in the order of the format. False when a
// number leaves 64 bits.
bool AddPremises(std::span<const Condition> given, std::span<const Condition> hypotheses,
                 const base::Symbols& symbols, std::size_t dims_end, Ledger& ledger);

}  // namespace tenon::cert
