#include "optimizer/device/operation.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/rules/text.h"

namespace tenon::optimizer {
namespace {

std::string TypeText(const graph::Extents& extents, std::string_view kind) {
  return fmt::format("{}[{}]", kind, fmt::join(extents.begin(), extents.end(), ","));
}

bool IsMeasurable(const graph::Node& n) {
  return n.type->dtype == graph::DataType::kFloat && graph::IsConcrete(n.shape());
}

}  // namespace

std::optional<Operation> OperationOf(const graph::Graph& g, graph::NodeId id) {
  const graph::Node& n = g.node(id);
  if (n.is_input() || ops::IsOpaque(*n.op) || !IsMeasurable(n)) return std::nullopt;
  Operation out{*n.op, {}, graph::Concrete(n.shape())};
  for (const graph::NodeId o : n.operands) {
    const graph::Node& from = g.node(o);
    if (!IsMeasurable(from)) return std::nullopt;
    const bool weight =
        from.is_input() ? g.input(from.input).kind == graph::InputKind::kWeight : from.weights_only;
    const auto first = std::find(n.operands.begin(), n.operands.end(), o) - n.operands.begin();
    const bool repeated = std::size_t(first) < out.operands.size();
    out.operands.push_back({graph::Concrete(from.shape()), weight, repeated ? int(first) : -1});
  }
  return out;
}

std::string TextOf(const Operation& operation) {
  std::string text = rules::PrintOperator(operation.op, base::Symbols());
  for (const Operand& o : operation.operands) {
    text += ' ' + TypeText(o.extents, o.weight ? "f32w" : "f32");
    if (o.same_as >= 0) text += fmt::format("={}", o.same_as);
  }
  return text + " -> " + TypeText(operation.output, "f32");
}

bool IsFree(const ops::Operator& op) { return std::holds_alternative<ops::Reshape>(op); }

double BytesOf(const Operation& operation) {
  double elements = double(graph::ElementCount(operation.output));
  for (const Operand& o : operation.operands) {
    if (o.same_as < 0) elements += double(graph::ElementCount(o.extents));
  }
  return 4 * elements;
}

}  // namespace tenon::optimizer
