// The random tester: both sides at random sizes and values, by the evaluator (core/eval), which is
// another reading of the operators and shares nothing with the normal form.
//
// Deterministic from its seed. A rule that is wrong at some shape is usually caught by the first
// random one, and by the eleventh at the latest in our experience, so sixteen are tried.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/rules/rule.h"
#include "verifier/verdict.h"

namespace tenon::verifier {

struct ScreenOptions {
  int shapes = 16;
  std::uint64_t seed = 0;
  // Sizes whose evaluation takes more operations than this are passed over.
  double work_max = 150'000;
};

struct Screened {
  int shapes = 0;  // Sizes at which both sides were evaluated.
  std::optional<Counterexample> counterexample;
  // Why fewer shapes than asked for were tried; empty if that is not so.
  std::string note;
};

// The outputs of the rule have equal types wherever its conditions hold (Proof::CheckForm).
Screened Screen(const rules::Rule& rule, const ScreenOptions& options);

// Tries given sizes (1 for dims and 0 for attributes that are absent); nothing when the sides agree
// there, or the sizes are not allowed or too large.
std::optional<Counterexample> TestAt(const rules::Rule& rule,
                                     const std::map<base::Symbol, std::int64_t>& sizes,
                                     const ScreenOptions& options);

// Sizes at which the rule applies, by symbol; nothing if random ones were not found.
std::optional<std::vector<std::int64_t>> FindSizes(const rules::Rule& rule, std::uint64_t seed);

// A seed that depends on what the rule says.
std::uint64_t SeedOf(const rules::Rule& rule);

}  // namespace tenon::verifier
