// The proof for all shapes, without the random tester. verifier/prove.h combines the two.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/rules/rule.h"
#include "verifier/nf/faults.h"
#include "verifier/nf/session.h"
#include "verifier/smt/solver.h"
#include "verifier/verdict.h"

namespace tenon::verifier {

struct Budget {
  nf::Limits terms;
  smt::SolverLimits solver;
  int shapes = 16;   // Random shapes that screening tries.
  int cells = 200;   // Cases that one output may be split into.
  int replans = 16;  // Times that an index may be split into digits.
  // Prove even what screening has refuted, and fail loudly if that succeeds.
  bool cross_check = false;
  nf::Fault fault = nf::Fault::kNone;  // For the test of the tests only.
};

// One rule in progress. Keeps a solver; destroy it before the next rule. Thread-compatible.
class Proof {
 public:
  // `rule` outlives the proof.
  Proof(const rules::Rule& rule, const Budget& budget);
  ~Proof();

  // Everything but equality: the rule is a rewrite, its hypotheses can hold, the target's
  // requirements follow from them (and, for a rule that holds both ways, the source's from the
  // target's), the shapes agree. Nothing when all is well.
  std::optional<Verdict> CheckForm();
  // Whether the outputs are equal: kProved, kUnproved or kUnknown. Call it after CheckForm.
  Verdict Equality();
  // After kUnproved: sizes at which to look for a counterexample; may be empty.
  const std::map<base::Symbol, std::int64_t>& suspicion() const { return suspicion_; }

 private:
  class Impl;
  Verdict Make(VerdictKind kind, std::string reason) const;

  std::unique_ptr<Impl> impl_;
  std::map<base::Symbol, std::int64_t> suspicion_;
};

}  // namespace tenon::verifier
