// Deliberate faults of the prover and of the checker of certificates, for the test that shows that
// the tests would notice them (tests/verifier/faults_test.cc, which names for each what catches it
// and fails for one that nothing does). Production code passes none.
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
  kRootOfAnything,          // sqrt(x)^2 is taken for x also where x may be negative.
  kMaximumForgets,          // Of two values the maximum is the first.
  kClampIsRelu,             // max(x, c) is taken for Relu(x) whatever c is.
  // What the operators mean.
  kSumIsOneShort,     // Sums leave their last element out.
  kSubIsAdd,          // A difference is a sum.
  kNegIsNothing,      // The sign is lost.
  kOneFunction,       // All functions of scalars are the same one.
  kInputsAreOne,      // Every input is the first one.
  kFirstBlockOnly,    // What belongs to a block (a group, a part) is taken from the first.
  kMaximumOfAnybody,  // A maximum asks for no admission.
  // The driver.
  kFirstOutputOnly,  // The other outputs are not compared.
  kSkipShapes,       // Shapes are not compared.
  kSkipBackwards,    // A rule that holds both ways is looked at one way.
  // The checker.
  kCheckNoChecksum,          // Any checksum fits.
  kCheckAnySemantics,        // Any version of the semantics will do.
  kCheckAnyRule,             // The rule in the certificate need not be the one that is asked about.
  kCheckNoEnd,               // Bytes may follow.
  kCheckNoWitness,           // The rule need not apply at the sizes that are named.
  kCheckNoArgument,          // A "yes" is believed.
  kCheckAbsurd,              // Any combination is a contradiction.
  kCheckReached,             // The goal is always reached.
  kCheckFirstBranch,         // The second branch of a split is not asked for.
  kCheckFirstCase,           // One member of a maximum stands for all.
  kCheckLeak,                // What a branch assumed stays known after it.
  kCheckScaleInequality,     // An inequality may be scaled like an equation.
  kCheckAnyDenominator,      // Division by what may not be positive.
  kCheckRoundReals,          // Reals are rounded like integers.
  kCheckUndecidedPieces,     // A piece that may hold counts as one that does not.
  kCheckNegativeMultiplier,  // A multiplier of 0 or beyond 62 bits will do.
  // Who makes certificates, which nobody has to trust.
  kCertifyOtherMultiplier,  // The first multiplier of each combination is one more.
  kCertifyOneBranch,        // Splits have one branch.
  kLast = kCertifyOneBranch,
};

}  // namespace tenon::nf
