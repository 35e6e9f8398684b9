// Certificates are made here: the proof once more, with an argument for each "yes" of Z3.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/nf/faults.h"
#include "verifier/smt/solver.h"
#include "verifier/verdict.h"

namespace tenon::certify {

// The certificate of a rule that verifier::Prove proves, checked (verifier/cert/check.h). A second
// step after the proof, for rules that are published: takes a few times as long. Depends on the
// rule alone. Calls from different threads are independent.
//
// FailedPrecondition: no argument was found for an answer that the proof needs, or the rule is not
// proved. Errors of rules::CanonicalBytes. Internal: what was made does not check.
// `fault` is for the test of the tests only.
StatusOr<std::string> Certify(const rules::Rule& rule, const smt::SolverLimits& limits = {},
                              nf::Fault fault = nf::Fault::kNone);

// The certificate that belongs to a verdict about `rule`: empty unless that is "proved". Where none
// is found, the verdict becomes "unproved": nothing is published on the word of a solver.
std::string CertifyOrDemote(const rules::Rule& rule, verifier::Verdict& verdict,
                            const smt::SolverLimits& limits = {});

}  // namespace tenon::certify
