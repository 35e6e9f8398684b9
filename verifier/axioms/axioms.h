// The second opinion: equality by rewriting, from axioms.
//
// The prover computes a normal form; the tester computes values. This is a third way, which shares
// neither: an e-graph that holds the two sides at some sizes and is saturated with small laws
// (algebra.rules beside this file, each proved and certified by the tests). What it finds equal
// comes with its steps, which are taken again one by one before anybody hears of them.
//
// It says nothing where it does not arrive: the axioms and the budget are small. What it derives of
// a rule that is refuted at the same sizes is a contradiction, and some part of Tenon is wrong.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/egraph/explain.h"
#include "core/rules/derivation.h"

namespace tenon::axioms {

using RuleList = std::vector<std::shared_ptr<const rules::Rule>>;

// The rule file that is built in, and its rules.
std::string_view Text();
RuleList BuiltIn();

inline constexpr egraph::SaturationLimits kLimits{.iterations = 6, .nodes = 2'000};

// Thread-compatible.
class SecondOpinion {
 public:
  explicit SecondOpinion(RuleList axioms, const egraph::SaturationLimits& limits = kLimits);

  const RuleList& axioms() const { return axioms_; }

  struct Opinion {
    // One for each output of the rule, replayed; empty: they were not all derived.
    std::vector<rules::Derivation> derivations;
    std::vector<rules::Replayed> replayed;
    std::string why;  // Then.
    bool derived() const { return !derivations.empty(); }
  };
  // About `rule` at these sizes, by symbol. InvalidArgument: the rule does not apply there.
  // Internal: what was found cannot be replayed.
  StatusOr<Opinion> At(const rules::Rule& rule, std::span<const std::int64_t> sizes);

 private:
  const RuleList axioms_;
  const egraph::SaturationLimits limits_;
  egraph::Vocabulary vocabulary_;
  egraph::RuleSet rules_;
};

}  // namespace tenon::axioms
