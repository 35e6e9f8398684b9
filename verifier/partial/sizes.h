// What is known of the sizes of a pair of programs, and what has been assumed about them.
//
// Where two programs differ depends on the order of sizes: whether an image is larger than a window
// reaches, for example. Such questions are answered as they are for large images and small
// attributes, and the answer becomes a condition of the corrected rule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/hypotheses.h"
#include "verifier/nf/facts.h"
#include "verifier/smt/solver.h"

namespace tenon::partial {

using base::Condition;
using base::Poly;

// `p` over `from` as a polynomial over `to`, divisions made anew. Symbols that are no divisions
// have the same numbers in both.
Poly Translate(const Poly& p, const base::Symbols& from, base::Symbols& to);

// Thread-compatible.
class Sizes {
 public:
  // FailedPrecondition: no sizes were found that fulfil the conditions of `pair` and of its source.
  static StatusOr<std::unique_ptr<Sizes>> Of(const rules::Rule& pair);

  // Whether `c`, over the symbols `from`, follows from what is known and assumed.
  bool Implied(const Condition& c, const base::Symbols& from);
  // Whether `c` holds. Where that depends on sizes, it is decided as it is at typical sizes, and
  // that is assumed from then on.
  bool Decide(const Condition& c, const base::Symbols& from);
  // What was assumed, over the symbols `to`, without what follows from the rest.
  std::vector<Condition> Assumed(base::Symbols& to);

  // Values by symbol: large dims, small attributes; all conditions and assumptions hold there.
  const std::vector<std::int64_t>& typical() const { return typical_; }
  // The same with each dim as small as the others allow, but at least 2 if possible: for
  // evaluation.
  std::vector<std::int64_t> Small() const;
  // `values` with each free dim 2 larger where that is allowed.
  std::vector<std::int64_t> Larger(std::vector<std::int64_t> values) const;
  // Value of `p` over `from` at values by symbol; nothing when it cannot be evaluated.
  std::optional<std::int64_t> At(const Poly& p, const base::Symbols& from,
                                 std::vector<std::int64_t> values);

 private:
  explicit Sizes(const rules::Rule& pair);
  // Fills in what equations determine; false when a condition fails.
  bool Complete(std::vector<std::int64_t>& values) const;
  bool FindTypical(const rules::Rule& pair);
  // `c` over our symbols, equations applied.
  Condition Own(const Condition& c, const base::Symbols& from);

  base::Symbols symbols_;
  std::size_t named_;  // Symbols of the rule itself.
  std::vector<Condition> conditions_;
  verifier::Solved solved_;
  smt::Solver solver_;
  nf::Facts facts_;
  nf::Guards assumed_;
  std::vector<std::int64_t> typical_;
};

}  // namespace tenon::partial
