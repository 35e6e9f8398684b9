// What one proof shares: symbols, facts, and the table of accessed functions.
//
// A session belongs to one direction of one rule and to one thread. Nothing survives it, so that a
// verdict depends on the rule alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/poly.h"
#include "verifier/nf/facts.h"
#include "verifier/nf/faults.h"
#include "verifier/nf/term.h"

namespace tenon::nf {

// What an access reads: an input, or a function of integers that stands for a scalar expression
// ("lifted"), so that everything above it is a polynomial again. Two accesses with the same head
// and the same arguments are the same number; the same is never claimed of different heads.
struct HeadInfo {
  enum class Kind : std::uint8_t {
    kInput,     // An input of the rule.
    kReal,      // A constant that is no small fraction.
    kFunction,  // fn(body)
    kRecipOf,   // 1 / an access of `of` with the same arguments.
    kMax,       // The greatest of the families in `body`, one term each.
    kSum,       // body itself, taken as one thing.
  };
  Kind kind = Kind::kInput;
  std::string name;             // kInput
  double value = 0;             // kReal
  ops::Fn fn = ops::Fn::kRelu;  // kFunction
  Head of = -1;                 // kRecipOf
  int parameters = 0;           // kFunction, kMax, kSum: `body` is over the symbols Param(0), ..
  Nf body;
  // Known of every value it has.
  bool non_negative = false;
  bool positive = false;
};

struct Limits {
  int steps = 40'000;      // Terms handled.
  int unroll = 64;         // Bound variables with constant ranges up to this may be unrolled.
  int permutations = 720;  // Of equal factors of one term.
};

// Thread-compatible.
class Session {
 public:
  Session(base::Symbols& all_symbols, Entail& entail, const Limits& limits, Fault fault);

  base::Symbols& symbols;
  Facts facts;
  std::vector<HeadInfo> heads;
  const Limits limits;
  const Fault fault;
  // Dims that the hypotheses express by others; applied to every size that comes from the graph.
  base::Symbols::Substitution eliminated;

  // Counts work; throws Unsupported when it exceeds the limit.
  void Step();
  int steps() const { return steps_; }
  // A new symbol; throws Unsupported when there are no more.
  Symbol Fresh(base::SymbolKind kind);
  // The q-th index of the j-th factor of a monomial.
  Symbol Coord(int factor, int axis);
  // The k-th parameter of lifted functions.
  Symbol Param(int k);
  // The k-th binder in a lifted body's own spelling.
  Symbol LocalBinder(int k);

  // Whether only dims and attributes occur.
  bool IsGlobal(const Poly& p) const;
  bool Mentions(const Poly& p, std::span<const Symbol> any) const;

  Poly Substitute(const Poly& p, const base::Symbols::Substitution& by);
  // Nothing when a guard becomes trivially false.
  std::optional<Term> Substitute(const Term& t, const base::Symbols::Substitution& by);
  Nf Substitute(const Nf& nf, const base::Symbols::Substitution& by);
  Atom Substitute(const Atom& a, const base::Symbols::Substitution& by);
  // With new symbols for all binders, those inside atoms included.
  Term Renamed(const Term& t);
  Atom Renamed(const Atom& a);
  // The product, binders kept apart.
  Nf Product(const Nf& a, const Nf& b);

  // For messages: "a", "relu(..)".
  std::string HeadName(Head head) const;

 private:
  Atom RenameInside(const Atom& a, const base::Symbols::Substitution& by);
  Symbol Numbered(std::vector<Symbol>& table, int k, const char* name, base::SymbolKind kind);
  int steps_ = 0;
  Symbol only_binder_ = 0;  // Of Fault::kReuseBinders.
  std::vector<std::vector<Symbol>> coords_;
  std::vector<Symbol> params_, locals_;
};

}  // namespace tenon::nf
