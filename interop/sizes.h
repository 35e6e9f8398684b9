// Equations between sizes, solved as far as a substitution solves them: how the most general shapes
// of a rule without shapes are found.
#pragma once

#include <string_view>

#include "core/base/poly.h"

namespace tenon::interop {

// Thread-compatible. All symbols are at least 1.
class Sizes {
 public:
  // A new size; names need not differ, but do where rule text is printed.
  base::Symbol Add(std::string_view name, base::SymbolKind kind = base::SymbolKind::kDim);
  const base::Symbols& symbols() const { return symbols_; }

  // Forgets every equation, keeps the symbols.
  void Reset();

  // `p` with what is solved in place of the symbols. `p` has no division.
  base::Poly Resolve(const base::Poly& p);

  // Demands a = b. True if that holds by now: it did, or one symbol could be written as a positive
  // polynomial of the others. False if it is left open: no such symbol, a division in it, or a
  // contradiction (which contradiction() remembers).
  bool Equate(const base::Poly& a, const base::Poly& b);

  // Whether `c` says no more than that sizes are at least 1.
  bool Always(const base::Condition& c) const;

  // Grows with every equation that was solved by a substitution.
  int solved() const { return solved_; }
  bool contradiction() const { return contradiction_; }

 private:
  bool Plain(const base::Poly& p) const;

  base::Symbols symbols_;
  base::Symbols::Substitution values_;  // Fully resolved.
  int solved_ = 0;
  bool contradiction_ = false;
};

}  // namespace tenon::interop
