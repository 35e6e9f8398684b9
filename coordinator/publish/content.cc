#include "coordinator/publish/content.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "core/rules/canonical.h"
#include "core/rules/float_class.h"
#include "core/rules/join.h"
#include "core/rules/lift.h"
#include "core/rules/rank.h"

namespace tenon::publish {
namespace {

// "concat_matmul__matmul_concat": the operators of both sides, from the roots down, each once.
std::string NameOf(const rules::Rule& rule) {
  const auto side = [&](const std::vector<graph::NodeId>& roots) {
    std::string out;
    std::set<std::string> seen;
    const std::vector<graph::NodeId> ids = rule.graph.Reachable(roots);
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      const graph::Node& n = rule.graph.node(*it);
      if (n.is_input()) continue;
      std::string word(ops::NameOf(*n.op));
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (!seen.insert(word).second) continue;
      out += (out.empty() ? "" : "_") + word;
    }
    return out.empty() ? std::string("input") : out;
  };
  const std::string name = side(rule.source) + "__" + side(rule.target);
  return rule.source.size() == 1 ? name : fmt::format("join{}_{}", rule.source.size(), name);
}

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

// What an enumeration of one rank and one output does not show: the kept rules one rank higher,
// then joins of all. Each is proved like any rule.
StatusOr<std::vector<rules::Rule>> Extended(std::vector<rules::Rule> kept, const Prover& prover,
                                            Made& made) {
  pack::Counts& counts = made.content.counts;
  std::set<std::string> seen;
  std::vector<rules::Rule> higher, joins;
  for (const rules::Rule& rule : kept) {
    ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(rule));
    seen.insert(std::move(bytes));
    if (auto one = rules::OneRankHigher(rule)) higher.push_back(*std::move(one));
  }
  ASSIGN_OR_RETURN(higher, ProvedOf(higher, seen, prover, counts));
  made.higher_rank_rules = higher.size();
  std::move(higher.begin(), higher.end(), std::back_inserter(kept));
  for (const rules::Rule& rule : kept) {
    for (rules::Rule& join : rules::Join(rule)) joins.push_back(std::move(join));
  }
  ASSIGN_OR_RETURN(joins, ProvedOf(joins, seen, prover, counts));
  made.multi_output_rules = joins.size();
  std::move(joins.begin(), joins.end(), std::back_inserter(kept));
  return kept;
}

// The rules with names and float classes, in the order of the pack.
StatusOr<std::vector<pack::PackedRule>> Packed(std::vector<rules::Rule> all) {
  struct Entry {
    std::string bytes;
    rules::Rule rule;
  };
  std::vector<Entry> entries;
  for (rules::Rule& rule : all) {
    ASSIGN_OR_RETURN(rule, rules::Canonical(rule));
    ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(rule));
    entries.push_back({std::move(bytes), std::move(rule)});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.bytes.size() != b.bytes.size() ? a.bytes.size() < b.bytes.size() : a.bytes < b.bytes;
  });
  std::map<std::string, int> used;
  std::vector<pack::PackedRule> out;
  for (Entry& e : entries) {
    const std::string name = NameOf(e.rule);
    const int number = ++used[name];
    e.rule.name = number == 1 ? name : fmt::format("{}_{}", name, number);
    e.rule.float_class = rules::FloatClassOf(e.rule);
    e.rule.expect = rules::Expect::kProved;
    out.push_back({std::move(e.rule), ""});
  }
  return out;
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
  made.content.counts = {found.graphs_by_size, found.class_count,    found.equivalent_pairs,
                         reduction.candidates, reduction.proved,     reduction.refuted,
                         reduction.unproved,   reduction.underivable};
  std::vector<rules::Rule> kept;
  for (reduce::KeptRule& k : reduction.rules) kept.push_back(std::move(k.rule));
  ASSIGN_OR_RETURN(kept, Extended(std::move(kept), prover, made));
  ASSIGN_OR_RETURN(made.content.rules, Packed(std::move(kept)));
  return made;
}

}  // namespace tenon::publish
