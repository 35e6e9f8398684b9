// Partial equivalence, all of it: where do two programs agree, and which corrected programs are
// equal everywhere?
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/partial/correct.h"
#include "verifier/partial/regions.h"
#include "verifier/verdict.h"

namespace tenon::partial {

// A corrected rule and what the verifier says of it.
struct Correction {
  std::string how;  // "recompute", or "a gap of 1 along H".
  Corrected corrected;
  verifier::Verdict verdict;
};

struct Found {
  rules::Rule pair;  // As given, symbols added.
  Regions regions;
  std::vector<Condition> assumed;  // Under which the regions hold, over the pair's symbols.
  // Proved ones, and the one that recomputes whatever its verdict; gaps that fail are left out.
  std::vector<Correction> corrections;
  std::string declined;  // Why nothing is recomputed, if so.
};

// `pair` is a rule that need not hold. Takes up to some seconds; the same answer for the same pair.
// Errors are those of FindRegions and of verifier::Prove.
StatusOr<Found> Find(const rules::Rule& pair);

}  // namespace tenon::partial
