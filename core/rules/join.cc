#include "core/rules/join.h"

#include "core/rules/canonical.h"
#include "core/rules/complete.h"

namespace tenon::rules {
namespace {

using graph::NodeId;

int Reductions(const graph::Graph& g, std::span<const NodeId> roots) {
  int count = 0;
  for (NodeId id : g.Reachable(roots)) {
    const graph::Node& n = g.node(id);
    if (!n.is_input() && ops::InfoOf(*n.op).nature == ops::Nature::kReduction) ++count;
  }
  return count;
}

std::optional<Rule> JoinOf(const Rule& rule, NodeId concat, NodeId whole) {
  const graph::Node& n = rule.graph.node(concat);
  if (n.is_input() || !std::holds_alternative<ops::Concat>(*n.op) || n.operands.size() < 2) {
    return std::nullopt;
  }
  const std::vector<NodeId> parts = n.operands;
  for (NodeId part : parts) {
    if (rule.graph.node(part).is_input()) return std::nullopt;
  }
  if (Reductions(rule.graph, std::vector{whole}) >= Reductions(rule.graph, parts)) {
    return std::nullopt;
  }
  const std::int64_t axis = std::get<ops::Concat>(*n.op).axis;
  Rule join;
  join.graph = rule.graph;
  join.where = rule.where;
  join.source = parts;
  base::Poly start = 0;
  for (NodeId part : parts) {
    ops::Slice slice;
    slice.axis = axis;
    slice.start = start;
    start += join.graph.shape(part)[int(axis)];
    slice.end = start;
    const auto id = join.graph.Add(slice, {whole});
    if (!id.ok()) return std::nullopt;
    join.target.push_back(*id);
  }
  if (!CompleteAt(join, nullptr, Ways::kForward)) return std::nullopt;
  auto canonical = Canonical(join);
  if (!canonical.ok()) return std::nullopt;
  return *std::move(canonical);
}

}  // namespace

std::vector<Rule> Join(const Rule& rule) {
  std::vector<Rule> out;
  if (rule.source.size() != 1) return out;
  if (auto join = JoinOf(rule, rule.source[0], rule.target[0])) out.push_back(*std::move(join));
  if (auto join = JoinOf(rule, rule.target[0], rule.source[0])) out.push_back(*std::move(join));
  return out;
}

}  // namespace tenon::rules
