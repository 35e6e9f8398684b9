// What the normaliser asks of whoever decides facts about integers (and, for the pointwise step,
// about reals). An implementation with Z3 lives in verifier/smt; one that looks facts up in a
// certificate can take its place without a change here.
//
// Every answer is allowed to be "do not know" (false, or kUnknown): it costs proofs, never
// soundness. A positive answer must be right.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "verifier/nf/term.h"

namespace tenon::nf {

// An integer that counts only where `when` holds.
struct Piece {
  Poly weight;
  Guards when;
};

struct Balance {
  enum class Kind : std::uint8_t { kYes, kNo, kUnknown };
  Kind kind = Kind::kUnknown;
  // With kNo: values of dims and attributes at which the claim may fail.
  std::map<Symbol, std::int64_t> model;
};

// A sum of products of real variables (numbered from 0).
struct RealTerm {
  Rational coefficient;
  std::vector<int> factors;
};
using RealSum = std::vector<RealTerm>;

// Whether goal = 0 for all reals that fulfil the facts.
struct RealProblem {
  struct Maximum {
    int variable = 0;         // Equals ..
    std::vector<RealSum> of;  // .. the greatest of these.
  };
  struct Definition {
    int variable = 0;
    RealSum equals;
  };
  int variables = 0;
  std::vector<Maximum> maxima;
  std::vector<Definition> definitions;
  std::vector<int> positive;      // Variables above 0.
  std::vector<int> non_negative;  // Variables of at least 0.
  RealSum goal;
};

// All questions are asked under the rule's hypotheses, which an implementation is built with.
// Thread-compatible.
class Entail {
 public:
  virtual ~Entail() = default;

  // True: no integers fulfil all of these and the hypotheses.
  virtual bool Unsat(std::span<const Condition> all) = 0;
  // True: where `given` holds, each of `claims` does.
  virtual bool Implies(std::span<const Condition> given, std::span<const Condition> claims) = 0;
  // kYes: for all integers where `given` holds, the weights of the pieces that hold add up to 0.
  virtual Balance Balanced(std::span<const Condition> given, std::span<const Piece> pieces) = 0;
  // kYes: for all integers where `given` holds, some piece of `left` holds iff one of `right` does.
  virtual Balance SameSets(std::span<const Condition> given, std::span<const Piece> left,
                           std::span<const Piece> right) = 0;
  // True: the problem's goal is 0.
  virtual bool RealZero(const RealProblem& problem) = 0;
};

}  // namespace tenon::nf
