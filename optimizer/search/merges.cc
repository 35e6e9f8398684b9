#include "optimizer/search/merges.h"

#include <algorithm>
#include <variant>

namespace tenon::optimizer {

using egraph::ClassId;
using egraph::EGraph;
using egraph::NodeId;

namespace {

// In how many ways one rule may merge one set of parts: forms of the parts and their order.
constexpr int kWays = 2;

}  // namespace

bool Merges::Stop() {
  stopped_ = stopped_ || (stop_ && stop_());
  return stopped_;
}

std::vector<ClassId> Merges::PartsOf(const EGraph& g, ClassId c) const {
  std::vector<ClassId> parts;
  g.ForEachUse(c, [&](NodeId n) {
    if (n < given_ || !g.alive(n)) return;
    if (!std::holds_alternative<ops::Slice>(g.vocabulary().op(g.op(n)))) return;
    const ClassId part = g.class_of(n);
    if (part != c) parts.push_back(part);
  });
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

bool Merges::Allows(const EGraph& g, const egraph::EGraphRule& rule,
                    std::span<const ClassId> outputs) {
  key_.clear();
  if (outputs.size() < 2) return true;
  std::vector<ClassId> all, whole;
  int merged = 0;
  for (const ClassId c : outputs) {
    if (g.weights_only(c)) return false;
    std::vector<ClassId> parts = PartsOf(g, c);
    merged += parts.empty() ? 0 : 1;
    if (parts.empty()) parts.push_back(c);
    all.insert(all.end(), parts.begin(), parts.end());
  }
  if (merged > 1) return false;
  std::sort(all.begin(), all.end());
  if (std::adjacent_find(all.begin(), all.end()) != all.end()) return false;
  // Of the parts, those that are not merged themselves say which set it is.
  key_.push_back(rule.number());
  for (const ClassId c : all) {
    if (PartsOf(g, c).empty()) key_.push_back(c);
  }
  const auto known = ways_.find(key_);
  return known == ways_.end() || known->second < kWays;
}

void Merges::Applied(const EGraph& g, const egraph::EGraphRule&, std::span<const ClassId>,
                     NodeId first_made) {
  if (!key_.empty() && first_made < NodeId(g.node_bound())) ++ways_[key_];
}

}  // namespace tenon::optimizer
