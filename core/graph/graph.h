// Graph: a DAG of operator nodes over typed inputs, hash-consed, with one or several outputs.
//
// The same class holds a user's model (concrete sizes), a graph of the enumeration, and both sides
// of a rule (sizes are polynomials over its symbols). Every node is one tensor; ONNX nodes with
// several outputs are several nodes here (core/ops/layout.h: Split; core/ops/opaque.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/poly.h"
#include "core/base/status.h"
#include "core/graph/type.h"
#include "core/ops/operator.h"

namespace tenon::graph {

// An index into the graph's nodes. Operands have smaller ids than the nodes that use them, so
// ascending ids are a topological order.
using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

// The numbers are persisted.
enum class InputKind : std::uint8_t {
  kActivation = 1,  // Known at run time only.
  kWeight = 2,      // Fixed before run time: what depends on weights only costs nothing.
};

struct Input {
  std::string name;
  InputKind kind = InputKind::kActivation;
};

struct Node {
  std::shared_ptr<const ops::Operator> op;  // Null for an input.
  std::vector<NodeId> operands;
  std::shared_ptr<const TensorType> type;
  // What the operator requires of symbolic sizes beyond what constants decide.
  std::shared_ptr<const std::vector<base::Condition>> requirements;  // Null when there are none.
  std::int32_t input = -1;    // The number of the input, or -1.
  bool weights_only = false;  // Depends on weights and constants only, no opaque node between.

  bool is_input() const { return input >= 0; }
  const Shape& shape() const { return type->shape; }
};

// Thread-compatible; copying shares the nodes' immutable parts.
class Graph {
 public:
  Graph() = default;

  const base::Symbols& symbols() const { return symbols_; }
  base::Symbols& symbols() { return symbols_; }

  NodeId AddInput(std::string_view name, InputKind kind, TensorType type);
  // The node `op`(operands), an existing one if there is an equal one. Its element type is the
  // operands' common one; for an opaque operator and one without operands it is `dtype`.
  // InvalidArgument names the operator and the misfit: shapes, arity, mixed element types.
  StatusOr<NodeId> Add(const ops::Operator& op, std::span<const NodeId> operands,
                       DataType dtype = DataType::kFloat);
  StatusOr<NodeId> Add(const ops::Operator& op, std::initializer_list<NodeId> operands) {
    return Add(op, std::span<const NodeId>(operands.begin(), operands.size()));
  }
  // Shares `op` and takes its word for the shape: for graphs rebuilt from a checked one.
  NodeId AddTrusted(const Node& node, std::span<const NodeId> operands);

  void SetOutputs(std::vector<NodeId> outputs) { outputs_ = std::move(outputs); }
  const std::vector<NodeId>& outputs() const { return outputs_; }

  std::size_t size() const { return nodes_.size(); }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  const Shape& shape(NodeId id) const { return *&node(id).type->shape; }
  std::span<const Input> inputs() const { return inputs_; }
  const Input& input(std::int32_t number) const { return inputs_[std::size_t(number)]; }
  // The node of an input.
  NodeId input_node(std::int32_t number) const { return input_nodes_[std::size_t(number)]; }

  // The ids of the nodes that `roots` depend on, themselves included, ascending.
  std::vector<NodeId> Reachable(std::span<const NodeId> roots) const;
  // The requirements of all those nodes, normalised, without duplicates.
  std::vector<base::Condition> Requirements(std::span<const NodeId> roots) const;
  // How many operator nodes `roots` reach.
  int OperatorCount(std::span<const NodeId> roots) const;

 private:
  NodeId Push(Node node, std::size_t hash);
  std::size_t HashOf(const ops::Operator& op, std::span<const NodeId> operands) const;
  NodeId FindEqual(std::size_t hash, const ops::Operator& op, std::span<const NodeId> operands,
                   DataType dtype) const;

  base::Symbols symbols_;
  std::vector<Node> nodes_;
  std::vector<Input> inputs_;
  std::vector<NodeId> input_nodes_;
  std::vector<NodeId> outputs_;
  std::unordered_multimap<std::size_t, NodeId> by_hash_;
};

// Copies the part of `from` that `roots` reach into `to`; `inputs` gives for each input of `from`
// the node of `to` that stands for it (kNoNode for one that is not reached), and sizes are
// rewritten by `sizes` (empty: as they are). Returns the images of `roots`. InvalidArgument when a
// node does not fit the new operands.
StatusOr<std::vector<NodeId>> CopyInto(const Graph& from, std::span<const NodeId> roots, Graph& to,
                                       std::span<const NodeId> inputs,
                                       const base::Symbols::Substitution& sizes = {});

// The graph at concrete sizes: symbol s becomes values[s]. InvalidArgument when a requirement fails
// there or a size is below 1.
StatusOr<Graph> Instantiate(const Graph& g, std::span<const NodeId> roots,
                            std::span<const std::int64_t> values);

}  // namespace tenon::graph
