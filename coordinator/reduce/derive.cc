#include "coordinator/reduce/derive.h"

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "core/rules/instance.h"

namespace tenon::reduce {

using graph::TermId;

PairDeriver::PairDeriver(egraph::Vocabulary& vocabulary, const graph::TermTable& terms,
                         egraph::EGraphOptions options)
    : terms_(terms), loader_(vocabulary, terms), g_(vocabulary, options) {}

// Hashes what the e-graph will be seeded with: operators, operands by their position, inputs by
// type, kind and order of first use. 128 bits, so that an accident is out of the question.
PairDeriver::Digest PairDeriver::DigestOf(TermId a, TermId b) {
  number_.resize(terms_.size(), -1);
  renaming_.assign(std::size_t(terms_.input_count()), -1);
  Digest d{0x9e3779b97f4a7c15ull, 0xc2b2ae3d27d4eb4full};
  const auto mix = [&](std::uint64_t v) {
    d[0] = (d[0] ^ v) * 0xff51afd7ed558ccdull;
    d[0] ^= d[0] >> 32;
    d[1] = (d[1] + v) * 0x9fb21c651e98df25ull;
    d[1] ^= d[1] >> 29;
  };
  std::int32_t inputs = 0, count = 0;
  const auto input = [&](TermId t) {
    if (!terms_.is_input(t) || renaming_[std::size_t(t)] >= 0) return;
    renaming_[std::size_t(t)] = inputs++;
    number_[std::size_t(t)] = count++;
    mix(1);
    mix(terms_.type_id(t));
    mix(static_cast<std::uint64_t>(terms_.input(t).kind));
  };
  std::vector<TermId> visited;
  for (TermId root : {a, b}) {
    input(root);
    if (!terms_.is_input(root)) {
      terms_.Closure(std::span(&root, 1), closure_);
      for (TermId t : closure_) {
        if (number_[std::size_t(t)] >= 0) continue;
        for (TermId o : terms_.operands(t)) input(o);
        mix(2);
        mix(terms_.op_id(t));
        for (TermId o : terms_.operands(t)) mix(std::uint64_t(number_[std::size_t(o)]));
        number_[std::size_t(t)] = count++;
        visited.push_back(t);
      }
    }
    mix(3);
    mix(std::uint64_t(number_[std::size_t(root)]));
  }
  for (TermId t : visited) number_[std::size_t(t)] = -1;
  for (TermId t = 0; t < terms_.input_count(); ++t) number_[std::size_t(t)] = -1;
  // What does not occur needs a number, too, but it plays no part.
  for (std::int32_t& r : renaming_) {
    if (r < 0) r = inputs++;
  }
  return d;
}

void PairDeriver::Use(const egraph::RuleSet& rules) {
  known_.clear();
  saturator_ = std::make_unique<egraph::Saturator>(rules);
}

bool PairDeriver::Derives(TermId a, TermId b) {
  CHECK(saturator_ != nullptr);
  const auto [it, fresh] = known_.try_emplace(DigestOf(a, b), false);
  if (!fresh) return it->second;
  g_.Clear();
  const egraph::ClassId x = loader_.Add(g_, a, renaming_), y = loader_.Add(g_, b, renaming_);
  const auto result = saturator_->Run(g_, kPairLimits, egraph::Goal{x, y});
  return it->second = result.stop == egraph::SaturationResult::Stop::kGoal;
}

std::optional<std::vector<std::int64_t>> DistinctSizes(const rules::Rule& rule) {
  constexpr int kDraws = 40;
  rules::Dice dice(1);
  std::optional<std::vector<std::int64_t>> best;
  std::size_t most = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    // Large dims differ more easily, small ones meet equalities more easily.
    const int dim_max = draw < kDraws / 2 ? 12 : 5;
    if (best && dim_max == 5) break;
    const auto values = rules::RandomValues(rule, dice, dim_max);
    if (!values) continue;
    // An extent of 1 is broadcast, which makes it a special case.
    std::set<std::int64_t> distinct;
    for (base::Symbol s = 1; s < rule.graph.symbols().size(); ++s) {
      if (rule.graph.symbols().kind(s) == base::SymbolKind::kDim && (*values)[s] > 1) {
        distinct.insert((*values)[s]);
      }
    }
    if (!best || distinct.size() > most) {
      most = distinct.size();
      best = values;
    }
  }
  return best;
}

std::optional<graph::Graph> DistinctInstance(const rules::Rule& rule) {
  const auto best = DistinctSizes(rule);
  if (!best) return std::nullopt;
  std::vector<graph::NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  auto instance = graph::Instantiate(rule.graph, roots, *best);
  if (!instance.ok()) return std::nullopt;
  return *std::move(instance);
}

bool DerivesRule(const egraph::RuleSet& rules, const rules::Rule& rule,
                 egraph::EGraphOptions options) {
  const auto instance = DistinctInstance(rule);
  if (!instance) return false;
  egraph::EGraph g(rules.vocabulary(), options);
  const auto roots = egraph::AddGraph(g, *instance, instance->outputs());
  const std::size_t outputs = rule.source.size();
  egraph::Saturator saturator(rules);
  // With several outputs each of them is to be joined; only the last is the goal of the run.
  const egraph::Goal goal{roots[outputs - 1], roots[2 * outputs - 1]};
  if (outputs == 1) {
    return saturator.Run(g, kPairLimits, goal).stop == egraph::SaturationResult::Stop::kGoal;
  }
  saturator.Run(g, kPairLimits);
  for (std::size_t k = 0; k < outputs; ++k) {
    if (!g.Equal(roots[k], roots[outputs + k])) return false;
  }
  return true;
}

}  // namespace tenon::reduce
