// The ledger of one argument: facts that are known, and what the argument is for.
//
// A fact is a polynomial that is at least 0, over the integers or over the reals. Facts enter as
// premises of the question or by one of four steps, each of which is checked by adding and
// multiplying polynomials; there is nothing else in the trusted base that reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "verifier/nf/entail.h"
#include "verifier/nf/faults.h"

namespace tenon::cert {

using base::Condition;
using base::Poly;
using base::Symbol;

// What the facts are to show. Refers to what the caller keeps. With kRefute: that there is nothing
// that fulfils them all.
struct Goal {
  enum class Kind : std::uint8_t { kRefute, kClaims, kBalanced, kSameSets, kZero };
  Kind kind = Kind::kRefute;
  std::span<const Condition> claims;       // kClaims: all hold.
  std::span<const nf::Piece> left, right;  // kBalanced: the weights of `left` that hold add up
                                           // to 0. kSameSets: one of left holds iff one of right.
  Poly zero;                               // kZero: equals 0.
};

// Thread-compatible.
class Ledger {
 public:
  enum class Numbers : std::uint8_t { kIntegers, kReals };
  // The first fact is 1 >= 0.
  explicit Ledger(Numbers numbers, nf::Fault fault = nf::Fault::kNone);

  Numbers numbers() const { return numbers_; }
  bool has(nf::Fault fault) const { return fault_ == fault; }
  std::size_t size() const { return facts_.size(); }
  const Poly& fact(std::size_t k) const { return facts_[k]; }
  // p >= 0, divided by the gcd of its coefficients; over the integers the constant is rounded
  // down, which keeps the same solutions. False for an invalid polynomial, which is not added.
  bool Add(const Poly& p);
  bool Add(const Condition& c);
  // Forgets all facts from the size-th on.
  void Shrink(std::size_t size);

  // Whether p >= 0 is a fact, or a constant.
  bool Has(const Poly& p) const;
  // Holds or fails by facts alone; nothing when no fact says it.
  std::optional<bool> Decided(const Condition& c) const;
  // As Decided, of a conjunction.
  std::optional<bool> Decided(std::span<const Condition> all) const;
  // Whether `goal` follows without another step.
  bool Reached(const Goal& goal) const;
  // The sum of the weights that hold; nothing when a piece is undecided.
  std::optional<Poly> Balance(const Goal& goal) const;

 private:
  Poly Normal(const Poly& p) const;
  Numbers numbers_;
  nf::Fault fault_;
  std::vector<Poly> facts_;
  std::vector<std::size_t> hashes_;
};

// The premises of a problem about reals, in the ledger's order: variable v is symbol v + 1. Nothing
// when a number leaves 64 bits. Adds them to `ledger` and returns the goal.
std::optional<Poly> AddPremises(const nf::RealProblem& problem, Ledger& ledger);
// For each maximum, its members minus the variable: one of them is at least 0.
std::optional<std::vector<std::vector<Poly>>> CasesOf(const nf::RealProblem& problem);

// How one step is written; docs/formats/certificate.md. The numbers are persisted.
enum class Step : std::uint8_t {
  kAbsurd = 0,    // A combination of facts is a negative constant.
  kReached = 1,   // The goal follows.
  kSplit = 2,     // p >= 0, or -p - 1 >= 0 (over the reals: -p >= 0).
  kCombine = 3,   // A combination of facts is a fact.
  kProduct = 4,   // The product of two facts is a fact.
  kScale = 5,     // p >= 0 and -p >= 0, so p q >= 0 and -p q >= 0.
  kDivision = 6,  // What floor division says of its symbol.
  kCase = 7,      // A maximum is one of its members.
};

}  // namespace tenon::cert
