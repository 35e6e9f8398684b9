// Both programs of a pair read as normal forms at every output position.
//
// A Reshape makes an output index consist of digits (verifier/nf/index_plan.h). Digits of a small
// constant extent are written out, so that what is left is linear: for each choice of them there is
// one pair of normal forms.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/rules/rule.h"
#include "verifier/nf/index_plan.h"
#include "verifier/nf/session.h"
#include "verifier/smt/solver.h"

namespace tenon::partial {

using base::Poly;
using base::Symbol;

// An output axis as digits, the most significant first; their product is the axis' extent.
struct Digits {
  std::vector<Poly> extents;
  std::vector<bool> written;  // Whether a digit is written out.
  int cut = 0;  // The digit that regions are cut along; -1: the extent is 1, there is none.
  // Whether the positions with given written digits follow each other, one choice after the other.
  bool contiguous() const;
};

// One choice of the written digits.
struct Choice {
  std::vector<std::vector<std::int64_t>> digits;  // For each axis, for each digit; -1: not written.
  std::vector<Symbol> cut;                        // For each axis the digit that is cut; 0: none.
  nf::Guards given;                               // The ranges of the digits that are left.
  nf::Nf source, target;
};

// Thread-compatible. Lives as long as what was read from it.
class Reading {
 public:
  // `pair` has one output, both sides have equal shapes, and it outlives the reading. Throws
  // nf::Unsupported.
  explicit Reading(const rules::Rule& pair);

  nf::Session& session() { return *session_; }
  const std::vector<Digits>& axes() const { return axes_; }
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  void ReadAll();
  void ReadOne(std::vector<std::vector<std::int64_t>> digits);

  const rules::Rule& pair_;
  base::Symbols symbols_;
  std::unique_ptr<smt::Solver> solver_;
  std::unique_ptr<nf::Session> session_;
  nf::IndexPlan plan_;
  std::vector<Digits> axes_;
  std::vector<Choice> choices_;
};

}  // namespace tenon::partial
