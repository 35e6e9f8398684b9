// What the verifier says about a rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/eval/tensor.h"

namespace tenon::verifier {

// Sizes and values at which the evaluator finds the two sides different.
struct Counterexample {
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // Dims and attributes by name.
  // The values of the inputs, by name.
  std::vector<std::pair<std::string, eval::Tensor<double>>> inputs;
  int output = 0;        // Which output ..
  graph::Extents index;  // .. and which element of it.
  double source_value = 0;
  double target_value = 0;
};

// What an answer took. The same in every run.
struct Counters {
  int shapes = 0;              // Random shapes on which the sides agreed, or until they did not.
  std::int64_t queries = 0;    // Questions put to the solver ..
  std::int64_t rlimit = 0;     // .. and their cost in its own units.
  std::int64_t undecided = 0;  // Questions without an answer.
  int steps = 0;               // Terms normalised.
  int cells = 0;               // Cases that were compared.
  friend bool operator==(const Counters&, const Counters&) = default;
};

// The numbers are persisted.
enum class VerdictKind : std::uint8_t {
  kProved = 1,     // Equal over the reals, at all sizes that the rule allows.
  kRefuted = 2,    // With a counterexample.
  kUnproved = 3,   // No proof was found, and no counterexample.
  kUnknown = 4,    // The method does not reach that far, or a limit was hit.
  kIllFormed = 5,  // The target can be undefined where the source is not, or it is no rewrite.
  kVacuous = 6,    // The rule applies nowhere.
};

// A value type.
struct Verdict {
  VerdictKind kind = VerdictKind::kUnknown;
  std::string reason;  // For a person; empty when proved.
  std::optional<Counterexample> counterexample;
  Counters counters;
  // False when a wall-clock limit was hit: another run may say more.
  bool repeatable = true;
};

// "proved", "refuted", ..
std::string NameOf(VerdictKind kind);
// "m=2 k=1: output 0 at [0,1] is 3 in the source and 4 in the target".
std::string Print(const Counterexample& c);

}  // namespace tenon::verifier
