// Reduce: from millions of equal pairs to the few rules that derive them all.
//
// Candidates come from classes of equal terms. One shared e-graph holds every term, saturated with
// the rules kept so far; what it has not joined is a candidate, from small to large. A candidate is
// lifted to a rule and *assumed*, so that nothing that follows from it becomes a candidate, too; at
// the end of a round all assumed rules go to the prover together. Then the verdicts are applied:
// what is proved is kept; what is not is replaced by its next fall-back, or given up, and whatever
// leaned on it comes up again. Proofs are the dear part, so they are asked for in few, large
// batches that a cluster can spread, and the outcome does not depend on when the answers come.
//
// Then rules that the others derive are dropped, and pairs are asked for once more, alone
// (derive.h): each class in full and a large sample of all pairs (pair_sample.h). What the shared
// e-graph hid comes back as a rule. What is left is `underivable`.
//
// A pure, single-threaded library: no clock, no randomness, no I/O. Equal inputs and verdicts give
// equal outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/reduce/derive.h"
#include "coordinator/reduce/pair_sample.h"
#include "core/base/status.h"

namespace tenon::reduce {

// Classes of equal terms: members(c) = members[at[c] .. at[c+1]). Inputs may be members; each term
// is in one class at most. Refers to what the caller keeps.
struct Classes {
  const graph::TermTable& terms;
  std::span<const std::size_t> at;
  std::span<const graph::TermId> members;

  std::size_t count() const { return at.size() - 1; }
  std::span<const graph::TermId> of(std::size_t c) const {
    return members.subspan(at[c], at[c + 1] - at[c]);
  }
};

// Forms of the rule that a pair of equal terms shows, the most general first, each of the others a
// fall-back; empty when there is none. Must be a function of its arguments. (core/rules/lift.h)
using Lifter = std::function<std::vector<rules::Rule>(const graph::Graph& g, graph::NodeId a,
                                                      graph::NodeId b)>;

enum class Verdict : std::uint8_t {
  kProved,
  kRefuted,
  kUnproved,  // Anything else.
};
// One verdict a rule, in order. An error ends the work.
using Prover =
    std::function<StatusOr<std::vector<Verdict>>(std::span<const rules::Rule* const> batch)>;

struct Progress {
  std::string_view phase;  // "candidates", "prune", "pairs".
  std::size_t done = 0;
  std::size_t total = 0;
};

struct ReduceOptions {
  // Exchanged operands of commutative operators count as equal without a rule: matchers try both
  // orders, and lifting makes no rule of it.
  egraph::EGraphOptions egraph{.commutative = true};
  PairSampleOptions last_check = {};
  // Called now and then; false ends the work with CANCELLED.
  std::function<bool(const Progress&)> progress;
};

struct KeptRule {
  rules::Rule rule;
  // How many classes of pairs' e-graphs it united in the last check: a hint how much it does.
  std::size_t uses = 0;
  // The pair of terms that showed it.
  graph::TermId a = graph::kNoTerm, b = graph::kNoTerm;
};

struct Reduction {
  std::vector<KeptRule> rules;  // By number of operators, then by canonical bytes.
  // Distinct lifted rules sent to the prover, a form and its fall-backs counting as one, and how
  // each ended, by its last form.
  std::size_t candidates = 0;
  std::size_t proved = 0;
  std::size_t refuted = 0;
  std::size_t unproved = 0;
  std::size_t pairs = 0;          // Unordered pairs of members of one class.
  std::size_t pairs_checked = 0;  // Of them, those that were asked for alone, in the last check.
  std::size_t underivable = 0;    // Of those, the ones that the kept rules do not join.
  std::size_t rounds = 0;         // Batches sent to the prover.
  // Pairs that stay underivable, the first of them at most kExamplesMax.
  static constexpr std::size_t kExamplesMax = 100;
  std::vector<std::pair<graph::TermId, graph::TermId>> examples;
};

// The work as a machine that stops where proofs are needed, for callers that get them from afar.
// Usage: while (!(batch = *r.Next()).empty()) r.Apply(verdicts of batch); then Take. Not copyable;
// thread-compatible.
class Reducer {
 public:
  Reducer(const Classes& classes, Lifter lifter, ReduceOptions options = {});
  ~Reducer();

  // The rules whose verdicts are needed next; they stay valid until Apply. Empty: all is done.
  StatusOr<std::vector<const rules::Rule*>> Next();
  // Verdicts for the batch of the last Next, in its order.
  void Apply(std::span<const Verdict> verdicts);
  // The outcome, after an empty batch.
  Reduction Take() &&;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// All of it. CANCELLED when `progress` says so; errors of the prover.
StatusOr<Reduction> Reduce(const Classes& classes, const Lifter& lifter, const Prover& prover,
                           ReduceOptions options = {});

}  // namespace tenon::reduce
