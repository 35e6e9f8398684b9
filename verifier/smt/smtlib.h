// Questions to the solver as SMT-LIB 2.6 text, for other solvers to confirm.
//
// Z3's own printer writes forms that are not in the standard (a sum of one term, an empty
// conjunction), which others refuse. Here each operator is printed as the standard has it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::smt {

// One question, and what Z3 said.
struct Obligation {
  enum class Answer : std::uint8_t { kUnsat, kSat, kUnknown };
  // A whole script, from (set-logic ..) to (check-sat). Its :status is Z3's answer.
  std::string text;
  Answer answer = Answer::kUnknown;
};

// Called after each question, on the thread that asked.
using OnObligation = std::function<void(const Obligation&)>;

}  // namespace tenon::smt
