#include "core/graph/graph.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/graph/infer.h"

namespace tenon::graph {

std::string_view NameOf(DataType t) {
  switch (t) {
    case DataType::kUndefined:
      return "undefined";
    case DataType::kFloat:
      return "float32";
    case DataType::kUint8:
      return "uint8";
    case DataType::kInt8:
      return "int8";
    case DataType::kUint16:
      return "uint16";
    case DataType::kInt16:
      return "int16";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kString:
      return "string";
    case DataType::kBool:
      return "bool";
    case DataType::kFloat16:
      return "float16";
    case DataType::kDouble:
      return "float64";
    case DataType::kUint32:
      return "uint32";
    case DataType::kUint64:
      return "uint64";
    case DataType::kComplex64:
      return "complex64";
    case DataType::kComplex128:
      return "complex128";
    case DataType::kBfloat16:
      return "bfloat16";
  }
  return "undefined";
}

bool IsConcrete(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(),
                     [](const base::Poly& p) { return p.is_constant(); });
}

Extents Concrete(const Shape& shape) {
  Extents out;
  for (const base::Poly& p : shape) out.push_back(p.constant());
  return out;
}

Shape ToShape(const Extents& extents) {
  Shape out;
  for (std::int64_t e : extents) out.push_back(e);
  return out;
}

std::int64_t ElementCount(const Extents& extents) {
  std::int64_t n = 1;
  for (std::int64_t e : extents) CHECK(!__builtin_mul_overflow(n, e, &n));
  return n;
}

NodeId Graph::AddInput(std::string_view name, InputKind kind, TensorType type) {
  Node node;
  node.input = std::int32_t(inputs_.size());
  node.weights_only = kind == InputKind::kWeight;
  node.type = std::make_shared<const TensorType>(std::move(type));
  inputs_.push_back({std::string(name), kind});
  nodes_.push_back(std::move(node));
  input_nodes_.push_back(NodeId(nodes_.size() - 1));
  return input_nodes_.back();
}

std::size_t Graph::HashOf(const ops::Operator& op, std::span<const NodeId> operands) const {
  std::size_t h = ops::Hash(op);
  for (NodeId id : operands) h = (h ^ std::size_t(id)) * 0x9e3779b97f4a7c15ull;
  return h;
}

NodeId Graph::FindEqual(std::size_t hash, const ops::Operator& op, std::span<const NodeId> operands,
                        DataType dtype) const {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Node& n = node(it->second);
    if (n.type->dtype == dtype && std::ranges::equal(n.operands, operands) &&
        (n.op.get() == &op || *n.op == op)) {
      return it->second;
    }
  }
  return kNoNode;
}

NodeId Graph::Push(Node node, std::size_t hash) {
  // Nobody can compute an opaque node ahead of time (and some are random).
  node.weights_only = !ops::IsOpaque(*node.op) &&
                      std::all_of(node.operands.begin(), node.operands.end(),
                                  [&](NodeId id) { return this->node(id).weights_only; });
  nodes_.push_back(std::move(node));
  by_hash_.emplace(hash, NodeId(nodes_.size() - 1));
  return NodeId(nodes_.size() - 1);
}

StatusOr<NodeId> Graph::Add(const ops::Operator& op, std::span<const NodeId> operands,
                            DataType dtype) {
  std::vector<Shape> shapes;
  for (NodeId id : operands) {
    CHECK(id >= 0 && std::size_t(id) < nodes_.size());
    shapes.push_back(shape(id));
  }
  if (!operands.empty() && !ops::IsOpaque(op)) {
    dtype = node(operands[0]).type->dtype;
    for (NodeId id : operands) {
      if (node(id).type->dtype != dtype) {
        return base::InvalidArgument(fmt::format("{}: operands of types {} and {}", ops::NameOf(op),
                                                 NameOf(dtype), NameOf(node(id).type->dtype)));
      }
    }
  }
  const std::size_t hash = HashOf(op, operands);
  if (const NodeId equal = FindEqual(hash, op, operands, dtype); equal != kNoNode) return equal;
  ASSIGN_OR_RETURN(Inferred inferred, InferShape(op, shapes, symbols_));
  Node node;
  node.op = std::make_shared<const ops::Operator>(op);
  node.operands.assign(operands.begin(), operands.end());
  node.type = std::make_shared<const TensorType>(TensorType{dtype, inferred.shape});
  if (!inferred.requirements.empty()) {
    node.requirements =
        std::make_shared<const std::vector<base::Condition>>(std::move(inferred.requirements));
  }
  return Push(std::move(node), hash);
}

NodeId Graph::AddTrusted(const Node& node, std::span<const NodeId> operands) {
  const std::size_t hash = HashOf(*node.op, operands);
  const NodeId equal = FindEqual(hash, *node.op, operands, node.type->dtype);
  if (equal != kNoNode) return equal;
  Node copy = node;
  copy.operands.assign(operands.begin(), operands.end());
  return Push(std::move(copy), hash);
}

std::vector<NodeId> Graph::Reachable(std::span<const NodeId> roots) const {
  std::vector<bool> seen(nodes_.size(), false);
  for (NodeId id : roots) seen[std::size_t(id)] = true;
  for (std::size_t k = nodes_.size(); k-- > 0;) {
    if (!seen[k]) continue;
    for (NodeId id : nodes_[k].operands) seen[std::size_t(id)] = true;
  }
  std::vector<NodeId> out;
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    if (seen[k]) out.push_back(NodeId(k));
  }
  return out;
}

std::vector<base::Condition> Graph::Requirements(std::span<const NodeId> roots) const {
  std::vector<base::Condition> out;
  for (NodeId id : Reachable(roots)) {
    if (node(id).requirements == nullptr) continue;
    for (const base::Condition& c : *node(id).requirements) {
      const base::Condition normal = base::Normal(c);
      if (std::find(out.begin(), out.end(), normal) == out.end()) out.push_back(normal);
    }
  }
  return out;
}

int Graph::OperatorCount(std::span<const NodeId> roots) const {
  int count = 0;
  for (NodeId id : Reachable(roots)) count += node(id).is_input() ? 0 : 1;
  return count;
}

StatusOr<std::vector<NodeId>> CopyInto(const Graph& from, std::span<const NodeId> roots, Graph& to,
                                       std::span<const NodeId> inputs,
                                       const base::Symbols::Substitution& sizes) {
  std::vector<NodeId> image(from.size(), kNoNode);
  for (NodeId id : from.Reachable(roots)) {
    const Node& n = from.node(id);
    if (n.is_input()) {
      image[std::size_t(id)] = inputs[std::size_t(n.input)];
      CHECK(image[std::size_t(id)] != kNoNode);
      continue;
    }
    std::vector<NodeId> operands;
    for (NodeId o : n.operands) operands.push_back(image[std::size_t(o)]);
    const ops::Operator op = sizes.empty() ? *n.op : ops::MapSizes(*n.op, [&](const ops::Size& s) {
      return to.symbols().Substitute(s, sizes);
    });
    ASSIGN_OR_RETURN(image[std::size_t(id)], to.Add(op, operands, n.type->dtype));
  }
  std::vector<NodeId> out;
  for (NodeId id : roots) out.push_back(image[std::size_t(id)]);
  return out;
}

StatusOr<Graph> Instantiate(const Graph& g, std::span<const NodeId> roots,
                            std::span<const std::int64_t> values) {
  Graph out;
  Status bad = OkStatus();
  const auto at = [&](const base::Poly& p) {
    const auto v = g.symbols().Eval(p, values);
    if (!v) bad = base::InvalidArgument("a size cannot be evaluated");
    return base::Poly(v.value_or(1));
  };
  std::vector<NodeId> image(g.size(), kNoNode);
  for (std::int32_t k = 0; k < std::int32_t(g.inputs().size()); ++k) {
    const Node& n = g.node(g.input_node(k));
    TensorType type{n.type->dtype, {}};
    for (const base::Poly& p : n.shape()) {
      type.shape.push_back(at(p));
      if (type.shape[type.shape.size() - 1].constant() < 1) {
        bad =
            base::InvalidArgument(fmt::format("input '{}' has an extent below 1", g.input(k).name));
      }
    }
    image[std::size_t(g.input_node(k))] = out.AddInput(g.input(k).name, g.input(k).kind, type);
  }
  RETURN_IF_ERROR(bad);
  for (NodeId id : g.Reachable(roots)) {
    const Node& n = g.node(id);
    if (n.is_input()) continue;
    std::vector<NodeId> operands;
    for (NodeId o : n.operands) operands.push_back(image[std::size_t(o)]);
    const ops::Operator op = ops::MapSizes(*n.op, at);
    RETURN_IF_ERROR(bad);
    ASSIGN_OR_RETURN(image[std::size_t(id)], out.Add(op, operands, n.type->dtype));
  }
  std::vector<NodeId> outputs;
  for (NodeId id : roots) outputs.push_back(image[std::size_t(id)]);
  out.SetOutputs(std::move(outputs));
  return out;
}

}  // namespace tenon::graph
