#include "verifier/axioms/axioms.h"

#include <fmt/core.h>

#include "core/base/check.h"
#include "core/rules/text.h"

namespace tenon::axioms {

RuleList BuiltIn() {
  const auto parsed = rules::ParseRules(Text(), "algebra.rules");
  CHECK(parsed.ok());
  RuleList out;
  for (const rules::ParsedRule& p : *parsed) {
    CHECK(p.rule.ok());
    out.push_back(std::make_shared<const rules::Rule>(*p.rule));
  }
  return out;
}

SecondOpinion::SecondOpinion(RuleList axioms, const egraph::SaturationLimits& limits)
    : axioms_(std::move(axioms)), limits_(limits), rules_(vocabulary_) {
  for (const auto& axiom : axioms_) rules_.Add(axiom);
}

StatusOr<SecondOpinion::Opinion> SecondOpinion::At(const rules::Rule& rule,
                                                   std::span<const std::int64_t> sizes) {
  std::vector<graph::NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  ASSIGN_OR_RETURN(const graph::Graph instance, graph::Instantiate(rule.graph, roots, sizes));
  const std::vector<graph::NodeId>& outputs = instance.outputs();
  Opinion out;
  for (std::size_t k = 0; k < rule.source.size(); ++k) {
    const graph::NodeId from = outputs[k], to = outputs[rule.source.size() + k];
    auto found = egraph::Derive(rules_, instance, from, to, limits_);
    if (absl::IsResourceExhausted(found.status())) {
      return Opinion{.why = base::Message(found.status())};
    }
    RETURN_IF_ERROR(found.status());
    if (!found->has_value()) {
      return Opinion{.why = fmt::format("the axioms do not join the sides of output {} within {} "
                                        "rounds and {} nodes",
                                        k, limits_.iterations, limits_.nodes)};
    }
    auto replayed = rules::Replay(**found, axioms_);
    if (!replayed.ok()) {
      return base::Internal(fmt::format("rule {}: a derivation that cannot be replayed: {}",
                                        rule.name, base::Message(replayed.status())));
    }
    out.derivations.push_back(**std::move(found));
    out.replayed.push_back(*std::move(replayed));
  }
  return out;
}

}  // namespace tenon::axioms
