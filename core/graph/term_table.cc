// Nodes lie in one array, operands in another, and an open-addressing table of node numbers makes
// equal terms one node. Nothing is ever removed, so numbers stay valid.
#include "core/graph/term_table.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/graph/infer.h"

namespace tenon::graph {
namespace {

std::size_t HashTerm(OpId op, std::span<const TermId> operands) {
  std::uint64_t h = 0x9e3779b97f4a7c15ull + op;
  for (TermId id : operands) {
    h = (h ^ static_cast<std::uint32_t>(id)) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

template <class T>
void AppendBytes(std::string& key, const T& value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  key.append(bytes, sizeof value);
}

std::string PrintValue(const ops::AttrValue& value, const base::Symbols& symbols) {
  struct Printer {
    const base::Symbols& symbols;
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(ops::Activation v) const { return std::string(ops::NameOf(v)); }
    std::string operator()(const ops::Size& v) const { return symbols.Print(v); }
    std::string operator()(const base::Short<std::int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ","));
    }
    std::string operator()(const base::Short<ops::Size>& v) const {
      std::vector<std::string> parts;
      for (const ops::Size& s : v) parts.push_back(symbols.Print(s));
      return fmt::format("[{}]", fmt::join(parts, ","));
    }
  };
  return std::visit(Printer{symbols}, value);
}

}  // namespace

TermTable::TermTable() : slots_(1024, kNoTerm) {}

TermId TermTable::AddInput(std::string_view name, InputKind kind, const TensorType& type) {
  CHECK(nodes_.size() == inputs_.size());
  CHECK(input_count() < kInputsMax);
  Node node{};
  node.mask = std::uint32_t{1} << inputs_.size();
  node.type = InternType(type);
  nodes_.push_back(node);
  inputs_.push_back({std::string(name), kind});
  return static_cast<TermId>(nodes_.size() - 1);
}

OpId TermTable::InternOperator(const ops::Operator& op) {
  const std::size_t hash = ops::Hash(op);
  const auto [first, last] = op_by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (*ops_[it->second] == op) return it->second;
  }
  CHECK(ops_.size() < 0xffff);
  ops_.push_back(std::make_shared<const ops::Operator>(op));
  const OpId id = static_cast<OpId>(ops_.size() - 1);
  op_by_hash_.emplace(hash, id);
  return id;
}

TypeId TermTable::InternType(const TensorType& type) {
  const Extents extents = Concrete(type.shape);
  std::string key;
  AppendBytes(key, type.dtype);
  for (std::int64_t e : extents) AppendBytes(key, e);
  const auto [it, is_new] = type_by_key_.try_emplace(std::move(key), TypeId(types_.size()));
  if (is_new) {
    CHECK(types_.size() < kNoType);
    types_.push_back(std::make_shared<const TensorType>(type));
    extents_.push_back(extents);
  }
  return it->second;
}

TypeId TermTable::Infer(OpId op, std::span<const TypeId> operands) {
  std::string key;
  AppendBytes(key, op);
  for (TypeId t : operands) AppendBytes(key, t);
  if (const auto it = inferred_.find(key); it != inferred_.end()) return it->second;
  TypeId result = kNoType;
  bool one_dtype = true;
  std::vector<Shape> shapes;
  for (TypeId t : operands) {
    one_dtype = one_dtype && types_[t]->dtype == types_[operands[0]]->dtype;
    shapes.push_back(types_[t]->shape);
  }
  base::Symbols symbols;
  if (one_dtype && !ops::IsOpaque(*ops_[op])) {
    const auto inferred = InferShape(*ops_[op], shapes, symbols);
    if (inferred.ok()) {
      const DataType dtype = operands.empty() ? DataType::kFloat : types_[operands[0]]->dtype;
      result = InternType({dtype, inferred->shape});
    }
  }
  inferred_.emplace(std::move(key), result);
  return result;
}

StatusOr<TermId> TermTable::Add(const ops::Operator& op, std::span<const TermId> operands) {
  const OpId id = InternOperator(op);
  std::vector<TypeId> types;
  for (TermId o : operands) types.push_back(type_id(o));
  const TypeId type = Infer(id, types);
  if (type != kNoType) return AddTyped(id, operands, type);
  // Once more, for the reason.
  if (ops::IsOpaque(op)) return base::InvalidArgument("an opaque operator in a term");
  std::vector<Shape> shapes;
  for (TypeId t : types) shapes.push_back(types_[t]->shape);
  base::Symbols symbols;
  RETURN_IF_ERROR(InferShape(op, shapes, symbols).status());
  return base::InvalidArgument(
      fmt::format("{}: operands of different element types", ops::NameOf(op)));
}

std::size_t TermTable::Slot(OpId op, std::span<const TermId> operand_ids) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = HashTerm(op, operand_ids) & mask;
  while (slots_[slot] != kNoTerm) {
    const TermId id = slots_[slot];
    if (at(id).op == op && std::ranges::equal(operands(id), operand_ids)) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

TermId TermTable::Find(OpId op, std::span<const TermId> operand_ids) const {
  return slots_[Slot(op, operand_ids)];
}

void TermTable::Grow() {
  slots_.assign(slots_.size() * 2, kNoTerm);
  for (std::size_t k = inputs_.size(); k < nodes_.size(); ++k) {
    const TermId id = static_cast<TermId>(k);
    slots_[Slot(at(id).op, operands(id))] = id;
  }
}

TermId TermTable::AddTyped(OpId op, std::span<const TermId> operand_ids, TypeId type, int size) {
  CHECK(op < ops_.size() && type < types_.size());
  if (nodes_.size() * 8 >= slots_.size() * 5) Grow();
  const std::size_t slot = Slot(op, operand_ids);
  if (slots_[slot] != kNoTerm) return slots_[slot];
  CHECK(nodes_.size() < 0x7fffffff);
  Node node{};
  for (TermId id : operand_ids) {
    CHECK(id >= 0 && static_cast<std::size_t>(id) < nodes_.size());
    node.mask |= at(id).mask;
  }
  if (size == 0) size = SizeOf(operand_ids) + 1;
  CHECK(size < 0xffff && operands_.size() + operand_ids.size() < 0xffffffff);
  node.operands_at = static_cast<std::uint32_t>(operands_.size());
  node.op = op;
  node.type = type;
  node.size = static_cast<std::uint16_t>(size);
  node.arity = static_cast<std::uint16_t>(operand_ids.size());
  operands_.insert(operands_.end(), operand_ids.begin(), operand_ids.end());
  nodes_.push_back(node);
  slots_[slot] = static_cast<TermId>(nodes_.size() - 1);
  return slots_[slot];
}

// The last terms were the last to take their slots, also when the table was laid out anew; taken
// out in reverse, they break no chain of those before.
void TermTable::Truncate(std::size_t size) {
  CHECK(size >= inputs_.size());
  while (nodes_.size() > size) {
    const TermId id = static_cast<TermId>(nodes_.size() - 1);
    const std::size_t slot = Slot(at(id).op, operands(id));
    CHECK(slots_[slot] == id);
    slots_[slot] = kNoTerm;
    operands_.resize(nodes_.back().operands_at);
    nodes_.pop_back();
  }
}

std::span<const TermId> TermTable::operands(TermId id) const {
  const Node& n = at(id);
  return {operands_.data() + n.operands_at, n.arity};
}

void TermTable::Closure(std::span<const TermId> roots, std::vector<TermId>& out) const {
  out.clear();
  // Terms of an enumeration are small: there a linear search beats a set.
  constexpr std::size_t kSmall = 32;
  std::unordered_set<TermId> seen;
  const auto is_new = [&](TermId id) {
    if (out.size() < kSmall) return std::find(out.begin(), out.end(), id) == out.end();
    if (seen.empty()) seen.insert(out.begin(), out.end());
    return seen.insert(id).second;
  };
  const auto visit = [&](TermId id) {
    if (!is_input(id) && is_new(id)) out.push_back(id);
  };
  for (TermId id : roots) visit(id);
  for (std::size_t k = 0; k < out.size(); ++k) {
    for (TermId id : operands(out[k])) visit(id);
  }
  std::sort(out.begin(), out.end());
}

int TermTable::SizeOf(std::span<const TermId> roots) const {
  std::vector<TermId> closure;
  Closure(roots, closure);
  return static_cast<int>(closure.size());
}

Graph TermTable::ToGraph(std::span<const TermId> roots) const {
  Graph g;
  std::unordered_map<TermId, NodeId> image;
  for (int k = 0; k < input_count(); ++k) {
    image[k] = g.AddInput(inputs_[static_cast<std::size_t>(k)].name,
                          inputs_[static_cast<std::size_t>(k)].kind, type(k));
  }
  std::vector<TermId> closure;
  Closure(roots, closure);
  for (TermId id : closure) {
    std::vector<NodeId> operand_nodes;
    for (TermId o : operands(id)) operand_nodes.push_back(image.at(o));
    graph::Node node;
    node.op = ops_[at(id).op];
    node.type = types_[at(id).type];
    image[id] = g.AddTrusted(node, operand_nodes);
  }
  std::vector<NodeId> outputs;
  for (TermId id : roots) outputs.push_back(image.at(id));
  g.SetOutputs(std::move(outputs));
  return g;
}

StatusOr<TermId> TermTable::FromGraph(const Graph& g, NodeId root, std::span<const TermId> inputs) {
  std::unordered_map<NodeId, TermId> image;
  for (NodeId id : g.Reachable(std::span(&root, 1))) {
    const graph::Node& n = g.node(id);
    if (n.is_input()) {
      image[id] = inputs[static_cast<std::size_t>(n.input)];
      continue;
    }
    std::vector<TermId> operand_ids;
    for (NodeId o : n.operands) operand_ids.push_back(image.at(o));
    ASSIGN_OR_RETURN(image[id], Add(*n.op, operand_ids));
  }
  return image.at(root);
}

std::string TermTable::Print(TermId id) const {
  if (is_input(id)) return inputs_[static_cast<std::size_t>(id)].name;
  return Print(op(id), operands(id));
}

std::string TermTable::Print(const ops::Operator& op, std::span<const TermId> operands) const {
  std::vector<std::string> parts;
  for (TermId o : operands) parts.push_back(Print(o));
  const base::Symbols none;
  const std::vector<ops::Attr> attrs = ops::AttrsOf(op);
  const std::vector<ops::Attr> defaults =
      ops::AttrsOf(*ops::OperatorByWireId(ops::InfoOf(op).wire_id));
  for (std::size_t k = 0; k < attrs.size(); ++k) {
    if (attrs[k].value == defaults[k].value) continue;
    parts.push_back(fmt::format("{}={}", attrs[k].name, PrintValue(attrs[k].value, none)));
  }
  return fmt::format("{}({})", ops::NameOf(op), fmt::join(parts, ", "));
}

std::size_t TermTable::memory_bytes() const {
  return nodes_.capacity() * sizeof(Node) +
         (operands_.capacity() + slots_.capacity()) * sizeof(TermId);
}

}  // namespace tenon::graph
