// Which indices are written as several digits.
//
// A Reshape that merges axes of extents a and b is read at i * b + j; one that splits them again
// must find i and j in an index k of extent a * b. No linear arithmetic does that. But k itself may
// be introduced as k1 * b + k2 with 0 <= k1 < a and 0 <= k2 < b: that runs over the same integers,
// each once. So when a split meets an undivided index, it refines the plan and throws Replan, and
// the denotation is computed again with the finer index.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "verifier/nf/session.h"
#include "verifier/nf/term.h"

namespace tenon::nf {

// Thrown after the plan was refined: compute the denotation again.
struct Replan {};

// Thread-compatible.
class IndexPlan {
 public:
  // Which denotation an index belongs to; output indices are shared by both sides.
  enum class Side { kOutput, kSource, kTarget };

  struct Made {
    Poly value;
    std::vector<Symbol> symbols;
    Guards range;
  };

  // Starts a computation of one side: its indices are numbered from 0 again.
  void Begin(Side side) { next_[side] = 0; }
  // A new index with 0 <= value < extent.
  Made Make(Session& s, Side side, const Poly& extent, base::SymbolKind kind);
  // Refines the plan so that `symbol`, of extent q * inner, becomes two digits. False when its
  // extent is no multiple of `inner`, or it is no symbol of this plan.
  bool Split(Session& s, Symbol symbol, const Poly& inner);

 private:
  using Key = std::pair<Side, int>;
  struct Digit {
    Key key;
    std::size_t part = 0;
    Poly extent;
  };
  std::map<Side, int> next_;
  std::map<Key, std::vector<Poly>> digits_;  // Extents, the most significant first.
  std::map<Symbol, Digit> made_;
};

// p = quotient * divisor + rest, by polynomial division of the terms that the leading term of the
// divisor divides. The rest is not claimed to be small.
struct Division {
  Poly quotient;
  Poly rest;
};
Division Divide(const Poly& p, const Poly& divisor);

// The position in a tensor of extents `from` with the row-major number of position `at` in one of
// extents `to` (core/ops/domain.h: Reindex). `context` is what holds there. Throws Unsupported when
// the axes cannot be matched, and Replan.
ops::Short<Poly> RowMajorPosition(Session& s, IndexPlan& plan, const Guards& context,
                                  const ops::Short<Poly>& from, const ops::Short<Poly>& to,
                                  const ops::Short<Poly>& at);

}  // namespace tenon::nf
