// Arguments: the reasons of one positive answer, as bytes; read and checked step by step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.h"
#include "verifier/cert/ledger.h"

namespace tenon::cert {

// Beyond these an argument is refused: they bound the time that foreign bytes can take.
inline constexpr int kDepthMax = 400;
inline constexpr std::size_t kFactsMax = 4096;
inline constexpr std::size_t kTermsMax = 1024;  // Of one fact.

// What an argument is about, besides the facts.
struct Question {
  const base::Symbols& symbols;
  Goal goal;
  // For kCase: what is at least 0 in each case of each maximum.
  std::span<const std::vector<Poly>> cases;
};

// Reads one argument from `in` and returns whether it shows the goal from the facts of `ledger`.
// When it does not, `in` is failed with the reason. Restores the ledger.
bool CheckArgument(const Question& question, Ledger& ledger, base::ByteReader& in);

// The facts that floor division gives of symbol `s`, when its denominator is a positive constant or
// `ledger` says that it is at least 1; nothing otherwise.
struct Division {
  Poly rest;   // numerator - denominator * s
  Poly below;  // denominator - 1 - rest
};
std::optional<Division> DivisionOf(const base::Symbols& symbols, Symbol s, const Ledger& ledger);

// Polynomials within arguments.
void PutPoly(std::string& out, const Poly& p);
// Fails `in` on anything but the canonical bytes. `symbols` bounds the symbols that may occur.
Poly ReadPoly(base::ByteReader& in, std::size_t symbols);

}  // namespace tenon::cert
