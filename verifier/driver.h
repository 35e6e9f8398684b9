// The driver of the all-shape proof: which questions are asked, in which order, and what follows
// from the answers. Who answers them (Z3, or a certificate) is the caller's choice; the driver
// needs core and verifier/nf only.
//
// The questions depend on the rule, the limits and the answers alone, so that a certificate can be
// the list of the answers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rules/rule.h"
#include "verifier/nf/entail.h"
#include "verifier/nf/faults.h"
#include "verifier/nf/session.h"
#include "verifier/verdict.h"

namespace tenon::verifier {

// Whoever answers. Thread-compatible.
class Oracle {
 public:
  virtual ~Oracle() = default;
  // Answers questions under `hypotheses`, which hold with all dims at least 1. `symbols` outlives
  // what is returned, and grows. Called for the rule itself first, and then, for a rule that holds
  // both ways, while that one lives, for the hypotheses of the target.
  virtual std::unique_ptr<nf::Entail> Answering(const base::Symbols& symbols,
                                                std::vector<base::Condition> hypotheses) = 0;
  // Whether there are sizes to which `rule` applies. Called once, after the first Answering.
  enum class Answer : std::uint8_t { kYes, kNo, kUnknown };
  virtual Answer CanApply(const rules::Rule& rule) = 0;
};

struct DriverLimits {
  nf::Limits terms;
  int cells = 200;
  int replans = 16;
  nf::Fault fault = nf::Fault::kNone;
};

// One rule in progress. Thread-compatible.
class Driver {
 public:
  struct Outcome {
    VerdictKind kind = VerdictKind::kUnknown;
    std::string reason;  // For a person; empty when proved.
  };

  // `rule` and `oracle` outlive the driver.
  Driver(const rules::Rule& rule, const DriverLimits& limits, Oracle& oracle);
  ~Driver();

  // Everything but equality; nothing when all is well.
  std::optional<Outcome> CheckForm();
  // kProved, kUnproved or kUnknown. Call it after CheckForm.
  Outcome Equality();

  // After kUnproved: sizes at which to look for a counterexample; may be empty.
  const std::map<base::Symbol, std::int64_t>& suspicion() const;
  int steps() const;
  int cells() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::verifier
