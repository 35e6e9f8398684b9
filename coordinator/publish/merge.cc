// Rules are dropped from large to small, as in reducing: what is small derives what is large. One
// rule after another is asked for with all that are left, so that nothing is dropped because of a
// rule that is dropped later; it costs an e-graph of at most 10,000 nodes a rule.
#include "coordinator/publish/merge.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "coordinator/publish/packed.h"
#include "coordinator/reduce/derive.h"
#include "core/rules/canonical.h"

namespace tenon::publish {
namespace {

struct Entry {
  std::shared_ptr<const rules::Rule> rule;
  std::string bytes;
  std::string certificate;
};

int OperatorsOf(const rules::Rule& rule) {
  return rule.graph.OperatorCount(rule.source) + rule.graph.OperatorCount(rule.target);
}

void Add(const MergeInput& from, pack::Content& to) {
  const pack::Counts& c = from.content.counts;
  pack::Counts& sum = to.counts;
  if (sum.graphs_by_size.size() < c.graphs_by_size.size()) {
    sum.graphs_by_size.resize(c.graphs_by_size.size());
  }
  for (std::size_t k = 0; k < c.graphs_by_size.size(); ++k) {
    sum.graphs_by_size[k] += c.graphs_by_size[k];
  }
  sum.classes += c.classes;
  sum.equivalent_pairs += c.equivalent_pairs;
  sum.candidates += c.candidates;
  sum.proved += c.proved;
  sum.refuted += c.refuted;
  sum.unproved += c.unproved;
  sum.pairs_checked += c.pairs_checked;
  sum.underivable += c.underivable;
  to.max_operators = std::max(to.max_operators, from.content.max_operators);
  if (from.content.mode != "exhaustive") to.mode = from.content.mode;
  to.universe += fmt::format("{}# {}, to {} operators\n{}", to.universe.empty() ? "" : "\n",
                             from.title, from.content.max_operators, from.content.universe);
}

// Whether the rules but for number `left_out` derive that one.
bool OthersDerive(const std::vector<Entry>& entries, std::size_t left_out) {
  egraph::Vocabulary words;
  egraph::RuleSet others(words);
  for (std::size_t k = 0; k < entries.size(); ++k) {
    if (k != left_out && entries[k].rule->source.size() == 1) others.Add(entries[k].rule);
  }
  return reduce::DerivesRule(others, *entries[left_out].rule, {.commutative = true});
}

}  // namespace

StatusOr<Merged> Merge(std::span<const MergeInput> packs,
                       const std::function<bool(std::size_t done, std::size_t total)>& progress) {
  if (packs.empty()) return base::InvalidArgument("no pack to merge");
  Merged out;
  std::map<std::string, std::string> certificates;
  std::set<std::string> corrected;
  std::vector<Entry> entries;
  for (const MergeInput& from : packs) {
    if (from.content.semantics != out.content.semantics) {
      return base::FailedPrecondition(
          fmt::format("{} is of semantics version {}, this tenon of {}; generate it anew",
                      from.title, from.content.semantics, out.content.semantics));
    }
    Add(from, out.content);
    for (const pack::PackedRule& packed : from.content.rules) {
      ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(packed.rule));
      if (!certificates.emplace(bytes, packed.certificate).second) {
        ++out.repeated;
        continue;
      }
      if (packed.corrected) corrected.insert(bytes);
      auto rule = std::make_shared<rules::Rule>(packed.rule);
      rule->name.clear();
      entries.push_back({std::move(rule), std::move(bytes), packed.certificate});
    }
  }
  // The smallest first, so that the last are dropped first; by bytes, whatever the order of packs.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(OperatorsOf(*a.rule), a.bytes) < std::pair(OperatorsOf(*b.rule), b.bytes);
  });
  const std::size_t total = entries.size();
  for (std::size_t k = total; k-- > 0;) {
    if (!progress(total - k, total)) return absl::CancelledError("merging was stopped");
    if (entries[k].rule->source.size() > 1 || !OthersDerive(entries, k)) continue;
    entries.erase(entries.begin() + std::ptrdiff_t(k));
    ++out.derived;
  }
  std::vector<rules::Rule> kept;
  for (const Entry& e : entries) kept.push_back(*e.rule);
  ASSIGN_OR_RETURN(out.content.rules, Packed(std::move(kept)));
  for (pack::PackedRule& packed : out.content.rules) {
    ASSIGN_OR_RETURN(const std::string bytes, rules::CanonicalBytes(packed.rule));
    packed.certificate = certificates.at(bytes);
    packed.corrected = corrected.contains(bytes);
  }
  return out;
}

}  // namespace tenon::publish
