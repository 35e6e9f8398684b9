// Derivability: whether rules make two things equal when nothing else is at hand.
//
// The measure of a set of rules, as the reports define it: an e-graph that holds the two sides and
// nothing else, 8 iterations, 10,000 nodes. A larger e-graph would hide that a derivation needs
// terms which only happened to be there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/egraph/load.h"
#include "core/egraph/saturate.h"
#include "core/graph/term_table.h"
#include "core/rules/rule.h"

namespace tenon::reduce {

inline constexpr egraph::SaturationLimits kPairLimits{.iterations = 8, .nodes = 10'000};

// Asks about pairs of terms of one table. Two pairs that differ only in the names of inputs are one
// question, and answers are remembered. Thread-compatible; the table must outlive it.
class PairDeriver {
 public:
  PairDeriver(egraph::Vocabulary& vocabulary, const graph::TermTable& terms,
              egraph::EGraphOptions options);

  // The rules of the questions that follow; they must outlive those. To be called again when the
  // set has changed: answers are forgotten and uses() is empty.
  void Use(const egraph::RuleSet& rules);

  // Whether the rules join the pair.
  bool Derives(graph::TermId a, graph::TermId b);
  // How many unions each rule made while questions were answered, by number.
  std::span<const std::size_t> uses() const { return saturator_->uses(); }

 private:
  using Digest = std::array<std::uint64_t, 2>;
  struct HashDigest {
    std::size_t operator()(const Digest& d) const { return d[0]; }
  };
  Digest DigestOf(graph::TermId a, graph::TermId b);

  const graph::TermTable& terms_;
  egraph::TermLoader loader_;
  egraph::EGraph g_;
  std::unique_ptr<egraph::Saturator> saturator_;
  std::unordered_map<Digest, bool, HashDigest> known_;
  std::vector<graph::TermId> closure_;
  std::vector<std::int32_t> number_;    // By term, in the order of the current pair.
  std::vector<std::int32_t> renaming_;  // By input.
};

// Sizes of a rule, by symbol, whose dims differ as far as its conditions allow. Nothing when none
// are found.
std::optional<std::vector<std::int64_t>> DistinctSizes(const rules::Rule& rule);

// A concrete instance of a rule whose dims differ as far as its conditions allow: what holds there
// because of the rule's own structure only. Nothing when no instance is found.
std::optional<graph::Graph> DistinctInstance(const rules::Rule& rule);

// Whether `rules` join the sides of the rule's distinct instance, within kPairLimits. False when
// there is no instance.
bool DerivesRule(const egraph::RuleSet& rules, const rules::Rule& rule,
                 egraph::EGraphOptions options);

}  // namespace tenon::reduce
