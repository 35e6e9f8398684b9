// Emitting operators of the algebra as ONNX nodes, in the form of the model's opset.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "onnx/onnx_pb.h"

namespace tenon::optimizer {

// Collects the nodes and initializers that are new. Thread-compatible.
class Emitter {
 public:
  // `taken` are the names that new values must avoid; it grows by them.
  Emitter(const graph::Graph& graph, int opset, std::unordered_set<std::string>& taken)
      : graph_(graph), opset_(opset), taken_(taken) {}

  // The node `id` as ONNX nodes: its operands are the values `inputs`, its value gets the name
  // `output`. FailedPrecondition: it has no form in this opset, or needs a size that depends on a
  // symbol.
  Status Emit(graph::NodeId id, const std::vector<std::string>& inputs, const std::string& output);
  // All parts of a Split at once.
  void EmitSplit(const std::string& input, std::int64_t axis,
                 const std::vector<std::string>& outputs);
  void EmitIdentity(const std::string& input, const std::string& output);
  // Appends a node that was there before.
  void Append(onnx::NodeProto node) { nodes_.push_back(std::move(node)); }

  std::vector<onnx::NodeProto>& nodes() { return nodes_; }
  std::vector<onnx::TensorProto>& initializers() { return initializers_; }

  // A name that is new to the model.
  std::string Fresh(std::string_view hint);

 private:
  struct OperatorCase;
  using Inputs = std::vector<std::string>;
  onnx::NodeProto& Add(std::string_view op_type, const Inputs& inputs, const std::string& output);
  // The name of an int64 vector; equal ones are one.
  std::string Ints(const std::vector<std::int64_t>& values);

  // Operators without a node of their own, as what they are made of; FailedPrecondition as in Emit.
  // (emit_derived.cc)
  class Steps;
  Status Expand(const ops::Silu& op, graph::NodeId id, const Inputs& in, const std::string& out);
  Status Expand(const ops::Gelu& op, graph::NodeId id, const Inputs& in, const std::string& out);
  Status Expand(const ops::LayerNormalization& op, graph::NodeId id, const Inputs& in,
                const std::string& out);
  Status Expand(const ops::RMSNormalization& op, graph::NodeId id, const Inputs& in,
                const std::string& out);

  const graph::Graph& graph_;
  const int opset_;
  std::unordered_set<std::string>& taken_;
  std::vector<onnx::NodeProto> nodes_;
  std::vector<onnx::TensorProto> initializers_;
  std::map<std::vector<std::int64_t>, std::string> ints_;
};

}  // namespace tenon::optimizer
