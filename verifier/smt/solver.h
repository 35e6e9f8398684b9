// Z3 as the oracle of the normal form: quantifier-free linear integer arithmetic, and real
// arithmetic for the pointwise step. The only code that sees Z3 is in this folder; its header here
// does not show it.
//
// One context and one solver for each rule: rlimit counts depend on what a context has done before.
// They are made with the first question (about 5 ms), which many rules never ask.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "verifier/nf/entail.h"
#include "verifier/smt/smtlib.h"

namespace tenon::smt {

struct SolverLimits {
  std::uint32_t integer_rlimit = 1'000'000;  // Of one query, in Z3's units.
  std::uint32_t real_rlimit = 20'000'000;
  std::chrono::milliseconds watchdog{20'000};  // Wall clock, against queries that ignore rlimit.
  OnObligation on_obligation;                  // If set, told of every question.
};

struct SolverCounts {
  std::int64_t queries = 0;
  std::int64_t rlimit = 0;   // Units used by all queries.
  std::int64_t unknown = 0;  // Queries that were not decided, the interrupted ones included.
  std::int64_t killed = 0;   // Queries that the watchdog interrupted.
};

// Thread-compatible. Symbols may be added to `symbols` while it lives.
class Solver final : public nf::Entail {
 public:
  // `symbols` outlives the solver. `hypotheses` hold for all questions, and dims are at least 1.
  Solver(const base::Symbols& symbols, std::vector<base::Condition> hypotheses,
         const SolverLimits& limits);
  ~Solver() override;

  // Whether the hypotheses can hold: kYes; kNo; or not known.
  enum class Answer : std::uint8_t { kYes, kNo, kUnknown };
  Answer HypothesesCanHold();

  bool Unsat(std::span<const base::Condition> all) override;
  bool Implies(std::span<const base::Condition> given,
               std::span<const base::Condition> claims) override;
  nf::Balance Balanced(std::span<const base::Condition> given,
                       std::span<const nf::Piece> pieces) override;
  nf::Balance SameSets(std::span<const base::Condition> given, std::span<const nf::Piece> left,
                       std::span<const nf::Piece> right) override;
  bool RealZero(const nf::RealProblem& problem) override;

  SolverCounts counts() const;

 private:
  class Impl;
  Impl& impl();

  const base::Symbols& symbols_;
  const std::vector<base::Condition> hypotheses_;
  const SolverLimits limits_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::smt
