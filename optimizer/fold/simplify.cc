// One pass in topological order: operands are simplified already, so a node needs to be looked at
// together with its operands only. Each rewrite yields nodes that are simplified themselves, since
// it takes operators away and puts none on top of another that it could meet again, save for the
// composed Transpose, Reshape and Slice, which are looked at once more.
#include "optimizer/fold/simplify.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

namespace tenon::optimizer {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;

class Simplifier {
 public:
  explicit Simplifier(Graph& out) : out_(out) {}

  StatusOr<NodeId> Add(const ops::Operator& op, const std::vector<NodeId>& operands,
                       graph::DataType dtype) {
    ops::Operator now = op;
    std::vector<NodeId> of = operands;
    for (;;) {
      const Step step = std::visit([&](const auto& o) { return Try(o, of); }, now);
      if (step.result != kNoNode) return step.result;
      if (!step.op) return out_.Add(now, of, dtype);
      now = *step.op;
      of = step.operands;
    }
  }

 private:
  // What a node is instead: another value, another operator, or (both empty) itself.
  struct Step {
    NodeId result = kNoNode;
    std::optional<ops::Operator> op;
    std::vector<NodeId> operands;
  };
  static Step Is(NodeId id) { return {id, {}, {}}; }
  static Step Becomes(ops::Operator op, std::vector<NodeId> operands) {
    return {kNoNode, std::move(op), std::move(operands)};
  }

  template <class Op>
  const Op* As(NodeId id) const {
    const graph::Node& n = out_.node(id);
    return n.is_input() ? nullptr : std::get_if<Op>(n.op.get());
  }
  NodeId Below(NodeId id) const { return out_.node(id).operands[0]; }
  const graph::Shape& ShapeOf(NodeId id) const { return out_.shape(id); }

  template <class Op>
  Step Try(const Op&, const std::vector<NodeId>&) const {
    return {};
  }

  Step Try(const ops::Neg&, const std::vector<NodeId>& in) const {
    return As<ops::Neg>(in[0]) ? Is(Below(in[0])) : Step{};
  }
  Step Try(const ops::Relu&, const std::vector<NodeId>& in) const {
    return As<ops::Relu>(in[0]) ? Is(in[0]) : Step{};
  }

  Step Try(const ops::Transpose& op, const std::vector<NodeId>& in) const {
    if (std::ranges::is_sorted(op.perm)) return Is(in[0]);
    const auto* below = As<ops::Transpose>(in[0]);
    if (below == nullptr) return {};
    ops::Transpose both = op;
    for (int a = 0; a < op.perm.size(); ++a) both.perm[a] = below->perm[int(op.perm[a])];
    return Becomes(both, {Below(in[0])});
  }

  Step Try(const ops::Reshape& op, const std::vector<NodeId>& in) const {
    if (ShapeOf(in[0]) == op.shape) return Is(in[0]);
    return As<ops::Reshape>(in[0]) ? Becomes(op, {Below(in[0])}) : Step{};
  }

  Step Try(const ops::Slice& op, const std::vector<NodeId>& in) const {
    if (op.start.is_constant(0) && op.end == ShapeOf(in[0])[int(op.axis)] && op.step == 1) {
      return Is(in[0]);
    }
    const auto* below = As<ops::Slice>(in[0]);
    if (below == nullptr || below->axis != op.axis || below->step != 1) return {};
    ops::Slice both = op;
    both.start = op.start + below->start;
    both.end = op.end + below->start;
    return Becomes(both, {Below(in[0])});
  }

  Step Try(const ops::Pad& op, const std::vector<NodeId>& in) const {
    const auto none = [](const ops::Size& s) { return s.is_constant(0); };
    return std::ranges::all_of(op.begins, none) && std::ranges::all_of(op.ends, none) ? Is(in[0])
                                                                                      : Step{};
  }

  Step Try(const ops::Enlarge& op, const std::vector<NodeId>& in) const {
    const graph::Shape& from = ShapeOf(in[0]);
    return from[2] == op.kernel_shape[0] && from[3] == op.kernel_shape[1] ? Is(in[0]) : Step{};
  }

  // A part of a Concat whose parts all have the part's extent is that part.
  Step Try(const ops::Split& op, const std::vector<NodeId>& in) const {
    if (op.parts == 1) return Is(in[0]);
    const auto* below = As<ops::Concat>(in[0]);
    if (below == nullptr || below->axis != op.axis) return {};
    const std::vector<NodeId>& pieces = out_.node(in[0]).operands;
    if (std::int64_t(pieces.size()) != op.parts) return {};
    for (NodeId p : pieces) {
      if (!(ShapeOf(p)[int(op.axis)] == ShapeOf(pieces[0])[int(op.axis)])) return {};
    }
    return Is(pieces[std::size_t(op.index)]);
  }

  // All parts of one Split in order are what was split.
  Step Try(const ops::Concat& op, const std::vector<NodeId>& in) const {
    if (in.size() == 1) return Is(in[0]);
    for (std::size_t k = 0; k < in.size(); ++k) {
      const auto* part = As<ops::Split>(in[k]);
      if (part == nullptr || part->axis != op.axis || part->index != std::int64_t(k) ||
          part->parts != std::int64_t(in.size()) || Below(in[k]) != Below(in[0])) {
        return {};
      }
    }
    return Is(Below(in[0]));
  }

  Graph& out_;
};

}  // namespace

StatusOr<Graph> Simplify(const Graph& graph) {
  Graph out;
  out.symbols() = graph.symbols();
  Simplifier simplifier(out);
  std::vector<NodeId> image(graph.size(), kNoNode);
  std::vector<bool> reached(graph.size(), false);
  const std::vector<NodeId> order = graph.Reachable(graph.outputs());
  for (NodeId id : order) reached[std::size_t(id)] = true;
  for (std::int32_t k = 0; k < std::int32_t(graph.inputs().size()); ++k) {
    const NodeId id = graph.input_node(k);
    const graph::Input& input = graph.input(k);
    if (input.kind == graph::InputKind::kWeight && !reached[std::size_t(id)]) continue;
    image[std::size_t(id)] = out.AddInput(input.name, input.kind, *graph.node(id).type);
  }
  for (NodeId id : order) {
    const graph::Node& n = graph.node(id);
    if (n.is_input()) continue;
    std::vector<NodeId> operands;
    for (NodeId o : n.operands) operands.push_back(image[std::size_t(o)]);
    ASSIGN_OR_RETURN(image[std::size_t(id)], simplifier.Add(*n.op, operands, n.type->dtype));
  }
  std::vector<NodeId> outputs;
  for (NodeId id : graph.outputs()) outputs.push_back(image[std::size_t(id)]);
  out.SetOutputs(std::move(outputs));
  return out;
}

}  // namespace tenon::optimizer
