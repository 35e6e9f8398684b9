#include "core/rules/rank.h"

#include <algorithm>

#include "core/rules/canonical.h"
#include "core/rules/complete.h"
#include "core/rules/instance.h"

namespace tenon::rules {
namespace {

using graph::NodeId;

constexpr int kTrials = 32;

// Marks the inputs that get the axis.
void Descend(const graph::Graph& g, NodeId id, std::vector<bool>& higher) {
  const graph::Node& n = g.node(id);
  if (n.is_input()) {
    higher[std::size_t(id)] = true;
    return;
  }
  const std::size_t count = std::holds_alternative<ops::MatMul>(*n.op) ? 1 : n.operands.size();
  for (std::size_t k = 0; k < count; ++k) Descend(g, n.operands[k], higher);
}

// The operator for operands that are one rank higher where `higher` says so; nothing when it has
// none.
std::optional<ops::Operator> Shifted(const ops::Operator& op, const std::vector<bool>& higher) {
  const bool all = std::all_of(higher.begin(), higher.end(), [](bool b) { return b; });
  ops::Operator out = op;
  if (auto* transpose = std::get_if<ops::Transpose>(&out)) {
    ops::Short<std::int64_t> perm{0};
    for (std::int64_t p : transpose->perm) perm.push_back(p + 1);
    transpose->perm = perm;
    return out;
  }
  if (auto* concat = std::get_if<ops::Concat>(&out)) {
    ++concat->axis;
    return all ? std::optional(out) : std::nullopt;
  }
  if (auto* slice = std::get_if<ops::Slice>(&out)) {
    ++slice->axis;
    return out;
  }
  if (auto* softmax = std::get_if<ops::Softmax>(&out)) {
    ++softmax->axis;
    return out;
  }
  // The leading axis broadcasts.
  const bool pointwise = ops::InfoOf(op).nature == ops::Nature::kPointwise &&
                         !std::holds_alternative<ops::BatchNormalization>(op);
  if (pointwise || std::holds_alternative<ops::MatMul>(op)) return out;
  return std::nullopt;
}

}  // namespace

std::optional<Rule> OneRankHigher(const Rule& rule) {
  const graph::Graph& g = rule.graph;
  std::vector<NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  const std::vector<NodeId> nodes = g.Reachable(roots);
  if (std::none_of(nodes.begin(), nodes.end(), [&](NodeId id) {
        return !g.node(id).is_input() && std::holds_alternative<ops::MatMul>(*g.node(id).op);
      })) {
    return std::nullopt;
  }
  std::vector<bool> higher(g.size(), false);
  for (NodeId id : roots) Descend(g, id, higher);

  Rule out;
  out.graph.symbols() = g.symbols();
  out.where = rule.where;
  const base::Symbol batch = out.graph.symbols().Add("batch", base::SymbolKind::kDim);
  std::vector<NodeId> image(g.size(), graph::kNoNode);
  for (NodeId id : nodes) {
    const graph::Node& n = g.node(id);
    if (n.is_input()) {
      graph::TensorType type = *n.type;
      if (higher[std::size_t(id)]) {
        if (type.shape.size() == base::kRankMax) return std::nullopt;
        type.shape.insert(0, base::Poly::Var(batch));
      }
      const graph::Input& input = g.input(n.input);
      image[std::size_t(id)] = out.graph.AddInput(input.name, input.kind, std::move(type));
      continue;
    }
    std::vector<NodeId> operands;
    std::vector<bool> operand_higher;
    for (NodeId o : n.operands) {
      operands.push_back(image[std::size_t(o)]);
      operand_higher.push_back(higher[std::size_t(o)]);
    }
    std::optional<ops::Operator> op = *n.op;
    if (std::find(operand_higher.begin(), operand_higher.end(), true) != operand_higher.end()) {
      op = Shifted(*n.op, operand_higher);
      higher[std::size_t(id)] = true;
    }
    if (!op) return std::nullopt;
    const auto added = out.graph.Add(*op, operands, n.type->dtype);
    if (!added.ok()) return std::nullopt;
    image[std::size_t(id)] = *added;
  }
  for (NodeId id : rule.source) out.source.push_back(image[std::size_t(id)]);
  for (NodeId id : rule.target) out.target.push_back(image[std::size_t(id)]);
  Dice dice(1);
  const Ways ways = rule.both ? Ways::kEither : Ways::kForward;
  if (!CompleteAt(out, nullptr, ways) || !LooksTrue(out, dice, kTrials)) return std::nullopt;
  auto canonical = Canonical(out);
  if (!canonical.ok()) return std::nullopt;
  return *std::move(canonical);
}

}  // namespace tenon::rules
