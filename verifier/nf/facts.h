// Facts: an Entail with what can be answered without asking it.
//
// Most questions repeat with other names for the same bound variables, or are decided by "a dim is
// at least 1". So a question is first made small: trivial conditions go, variables that occur with
// coefficients +-1 are eliminated exactly (Fourier-Motzkin; exact over the integers because the
// coefficients are units), and the rest, which mostly mentions dims only, is looked up in a cache.
// Answers do not depend on the order of questions.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "verifier/nf/entail.h"
#include "verifier/nf/faults.h"

namespace tenon::nf {

// Thread-compatible.
class Facts {
 public:
  Facts(base::Symbols& symbols, Entail& entail, Fault fault)
      : symbols_(symbols), entail_(entail), fault_(fault) {}

  // True: nothing fulfils all of these (and the hypotheses).
  bool Unsat(const Guards& all);
  bool Unsat(const Guards& given, const Condition& c);
  // True: where `given` holds, so does `c`.
  bool Implied(const Guards& given, const Condition& c);
  bool ImpliedAll(const Guards& given, const Guards& claims);
  // Whether `c` holds everywhere or nowhere where `given` does; nothing if neither is known.
  std::optional<bool> Decide(const Guards& given, const Condition& c);
  Balance Balanced(const Guards& given, const std::vector<Piece>& pieces);
  Balance SameSets(const Guards& given, const std::vector<Piece>& left,
                   const std::vector<Piece>& right);
  bool RealZero(const RealProblem& problem);

 private:
  // True by "a dim is at least 1" alone.
  bool Obvious(const Condition& c) const;
  // The simplified question; false when it is trivially unsatisfiable.
  bool Simplify(Guards& all);
  bool Project(Guards& all, Symbol symbol);
  // Only a shortcut: true when `c` cannot follow from `given` because one of its variables is free
  // to go far enough in one direction.
  bool CannotFollow(const Guards& given, const Condition& c) const;

  struct Entry {
    Guards question;
    bool unsat;
  };
  base::Symbols& symbols_;
  Entail& entail_;
  Fault fault_;
  std::unordered_multimap<std::size_t, Entry> cache_;
};

}  // namespace tenon::nf
