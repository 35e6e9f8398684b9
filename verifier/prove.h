// Prove: the verifier's one question.
#pragma once

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/decide.h"
#include "verifier/verdict.h"

namespace tenon::verifier {

// What is known about `rule`. In this order: is it a rewrite whose target is defined wherever its
// source is (kIllFormed, kVacuous)? Do both sides agree on random shapes (kRefuted)? Are they equal
// at all sizes (kProved; else kUnproved or kUnknown)?
//
// The verdict and its counters depend on the rule and the budget only, not on earlier calls, time
// or threads, unless Verdict::repeatable says otherwise. Takes milliseconds, seconds at worst, and
// runs a watchdog thread while it does. Calls from different threads are independent.
//
// Internal: prover and tester contradict each other, so one of them is wrong; trust neither and
// stop.
StatusOr<Verdict> Prove(const rules::Rule& rule, const Budget& budget);

// Whether a verdict is what a rule file expects.
bool Meets(rules::Expect expect, VerdictKind kind);

}  // namespace tenon::verifier
