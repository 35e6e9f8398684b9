#include "coordinator/publish/content.h"

#include <set>

#include "coordinator/publish/packed.h"
#include "core/rules/canonical.h"
#include "core/rules/forms.h"
#include "core/rules/join.h"
#include "core/rules/lift.h"

namespace tenon::publish {
namespace {

// Which of `derived` are proved; counts them as candidates. Rules in `seen` are left out, the
// others join it.
StatusOr<std::vector<rules::Rule>> ProvedOf(const std::vector<rules::Rule>& derived,
                                            std::set<std::string>& seen, const Prover& prover,
                                            pack::Counts& counts) {
  std::vector<const rules::Rule*> batch;
  for (const rules::Rule& rule : derived) {
    const auto bytes = rules::CanonicalBytes(rule);
    if (bytes.ok() && seen.insert(*bytes).second) batch.push_back(&rule);
  }
  if (batch.empty()) return std::vector<rules::Rule>();
  ASSIGN_OR_RETURN(const std::vector<reduce::Verdict> verdicts, prover(batch));
  if (verdicts.size() != batch.size()) {
    return base::Internal("the prover returned another number of verdicts than rules");
  }
  std::vector<rules::Rule> out;
  for (std::size_t k = 0; k < batch.size(); ++k) {
    ++counts.candidates;
    switch (verdicts[k]) {
      case reduce::Verdict::kProved:
        ++counts.proved;
        out.push_back(*batch[k]);
        break;
      case reduce::Verdict::kRefuted:
        ++counts.refuted;
        break;
      case reduce::Verdict::kUnproved:
        ++counts.unproved;
        break;
    }
  }
  return out;
}

// What an enumeration of few shapes and one output does not show: the other forms of the kept
// rules, then joins of all. Each is proved like any rule.
StatusOr<std::vector<rules::Rule>> Extended(std::vector<rules::Rule> kept, const Prover& prover,
                                            Made& made) {
  pack::Counts& counts = made.content.counts;
  std::set<std::string> seen;
  std::vector<rules::Rule> forms, joins;
  for (const rules::Rule& rule : kept) {
    ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(rule));
    seen.insert(std::move(bytes));
    for (rules::Rule& form : rules::Forms(rule)) forms.push_back(std::move(form));
  }
  ASSIGN_OR_RETURN(forms, ProvedOf(forms, seen, prover, counts));
  std::move(forms.begin(), forms.end(), std::back_inserter(kept));
  for (const rules::Rule& rule : kept) {
    for (rules::Rule& join : rules::Join(rule)) joins.push_back(std::move(join));
  }
  ASSIGN_OR_RETURN(joins, ProvedOf(joins, seen, prover, counts));
  std::move(joins.begin(), joins.end(), std::back_inserter(kept));
  return kept;
}

}  // namespace

StatusOr<Made> MakeContent(const Found& found, const Prover& prover,
                           const std::function<bool(const Progress&)>& progress) {
  reduce::ReduceOptions options;
  options.progress = progress;
  ASSIGN_OR_RETURN(reduce::Reduction reduction,
                   reduce::Reduce(
                       found.classes,
                       [](const graph::Graph& g, graph::NodeId a, graph::NodeId b) {
                         return rules::Lift(g, a, b);
                       },
                       prover, options));
  Made made;
  made.rounds = reduction.rounds;
  made.examples = std::move(reduction.examples);
  made.content.universe = found.universe;
  made.content.mode = found.mode;
  made.content.max_operators = found.max_operators;
  made.content.counts = {found.graphs_by_size, found.class_count,       found.equivalent_pairs,
                         reduction.candidates, reduction.proved,        reduction.refuted,
                         reduction.unproved,   reduction.pairs_checked, reduction.underivable};
  std::vector<rules::Rule> kept;
  for (reduce::KeptRule& k : reduction.rules) kept.push_back(std::move(k.rule));
  ASSIGN_OR_RETURN(kept, Extended(std::move(kept), prover, made));
  ASSIGN_OR_RETURN(made.content.rules, Packed(std::move(kept)));
  for (const pack::PackedRule& r : made.content.rules) {
    if (r.rule.source.size() > 1 && r.form_of.empty()) ++made.multi_output_rules;
  }
  return made;
}

}  // namespace tenon::publish
