// Deliberate faults of the prover, for the test that shows that the corpora and the fuzzer would
// notice them. Production code passes none.
#pragma once

#include <cstdint>

namespace tenon::nf {

enum class Fault : std::uint8_t {
  kNone,
  kDropSelectGuard,         // The `then` of a Select also holds where its condition does not.
  kSkipTargetRequirements,  // What the target's operators require is not proved.
  kLiftIgnoresBody,         // Functions of as many parameters are taken for the same.
  kReuseBinders,            // Every sum binds the same symbol.
  kIgnoreCount,             // A sum that repeats a value counts it once.
  kDropIndexEquations,      // Accesses need not agree where elimination left an equation.
  kEverythingUnsat,         // Every query is answered "no counterexample".
  kInverseTranspose,        // Transpose permutes the other way round.
  kReluIsLinear,            // Relu of anything is taken for non-negative.
  kCancelReciprocals,       // x * 1/x is taken for 1 also where x may be 0.
  kIgnoreOffsets,           // Constants within accesses are dropped.
};

}  // namespace tenon::nf
