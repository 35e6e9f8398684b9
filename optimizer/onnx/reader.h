// Reader: one ONNX node as the hooks see it, and the hooks: per operator type, what the node means
// in the algebra.
//
// A hook either states the meaning exactly, for every value of inputs and symbolic sizes, or
// refuses; a refused node becomes opaque. Refusing costs an optimization, guessing costs a user's
// model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "onnx/onnx_pb.h"

namespace tenon::optimizer {

// Thread-compatible; lives while one node is read.
class Reader {
 public:
  // The tensor behind a value that is known before run time, or null.
  using Constants = std::function<const onnx::TensorProto*(const std::string&)>;

  // `operands` are the values of the node's inputs, kNoNode for one that is left out.
  Reader(const onnx::NodeProto& node, int opset, std::vector<graph::NodeId> operands,
         Constants constants, const std::filesystem::path& folder, graph::Graph& graph)
      : node_(node),
        opset_(opset),
        operands_(std::move(operands)),
        constants_(std::move(constants)),
        folder_(folder),
        graph_(graph) {}

  int opset() const { return opset_; }
  int input_count() const { return int(operands_.size()); }
  bool HasInput(int k) const { return in(k) != graph::kNoNode; }
  graph::NodeId in(int k) const {
    return k < input_count() ? operands_[std::size_t(k)] : graph::kNoNode;
  }
  // That of a scalar when the input is left out: whoever adds a node with it is refused.
  const graph::Shape& shape(int k) const { return HasInput(k) ? graph_.shape(in(k)) : nothing_; }
  const graph::Shape& ShapeOf(graph::NodeId id) const { return graph_.shape(id); }
  int rank(int k) const { return shape(k).size(); }
  int output_count() const;
  // Whether output k has a name, so that somebody may use it.
  bool HasOutput(int k) const;

  bool HasAttr(std::string_view name) const { return Find(name) != nullptr; }
  std::int64_t Int(std::string_view name, std::int64_t otherwise) const;
  double Float(std::string_view name, double otherwise) const;
  std::string String(std::string_view name, std::string_view otherwise) const;
  std::optional<std::vector<std::int64_t>> Ints(std::string_view name) const;
  // Input k if it is a constant integer tensor; nothing if it is absent or not known.
  std::optional<std::vector<std::int64_t>> ConstantInts(int k) const;
  // Input k if it is one constant number (a bool is 0 or 1).
  std::optional<double> ConstantScalar(int k) const;
  // What newer opsets pass as input k and older ones as an attribute.
  std::optional<std::vector<std::int64_t>> IntsFrom(int since_opset, int k,
                                                    std::string_view attr) const {
    return opset_ >= since_opset ? ConstantInts(k) : Ints(attr);
  }
  // `axis` counted from the front; nothing when it is outside.
  static std::optional<std::int64_t> Axis(std::int64_t axis, int rank);

  // A node of the graph. kNoNode, and the node is refused, when an operand is kNoNode, the operands
  // do not fit, or the fit depends on symbolic sizes.
  graph::NodeId Add(const ops::Operator& op, std::initializer_list<graph::NodeId> operands) {
    return Add(op, std::vector<graph::NodeId>(operands));
  }
  graph::NodeId Add(const ops::Operator& op, const std::vector<graph::NodeId>& operands);
  graph::NodeId Scalar(double value);  // A rank-0 constant of the type of input 0.
  // kNoNode; the first reason is kept.
  graph::NodeId Refuse(std::string_view why);
  const std::string& refusal() const { return refusal_; }
  base::Symbols& symbols() { return graph_.symbols(); }

 private:
  const onnx::AttributeProto* Find(std::string_view name) const;
  const onnx::TensorProto* Constant(int k) const;
  bool HoldsForAllSizes(const base::Condition& c) const;

  const onnx::NodeProto& node_;
  const int opset_;
  const std::vector<graph::NodeId> operands_;
  const Constants constants_;
  const std::filesystem::path& folder_;
  graph::Graph& graph_;
  const graph::Shape nothing_;
  std::string refusal_;
};

// The node's outputs, from the front (outputs beyond them must be unnamed); a kNoNode among them
// refuses the node.
using Meaning = std::vector<graph::NodeId>;
using Hook = Meaning (*)(Reader&);

// The hook of an operator of ONNX's own domain, for opsets kOpsetMin to kOpsetMax; null: opaque.
Hook HookOf(std::string_view op_type);

// Operators that pass input 0 on whatever its type is.
bool IsAlias(const Reader& reader, std::string_view op_type);

// The hooks, by file.
// understand_pointwise.cc
Meaning UnderstandPointwise(Reader& r, const ops::Operator& op);
// Any number of operands, folded by `op` from the left.
Meaning UnderstandFold(Reader& r, const ops::Operator& op);
Meaning UnderstandLeakyRelu(Reader& r);
Meaning UnderstandClip(Reader& r);
Meaning UnderstandPow(Reader& r);
Meaning UnderstandLayerNormalization(Reader& r);
Meaning UnderstandBatchNormalization(Reader& r);
// understand_matmul.cc
Meaning UnderstandMatMul(Reader& r);
Meaning UnderstandGemm(Reader& r);
// understand_layout.cc
Meaning UnderstandTranspose(Reader& r);
Meaning UnderstandConcat(Reader& r);
Meaning UnderstandSplit(Reader& r);
Meaning UnderstandSlice(Reader& r);
Meaning UnderstandPad(Reader& r);
// understand_reshape.cc
Meaning UnderstandReshape(Reader& r);
Meaning UnderstandFlatten(Reader& r);
Meaning UnderstandSqueeze(Reader& r);
Meaning UnderstandUnsqueeze(Reader& r);
// understand_window.cc
Meaning UnderstandConv(Reader& r);
Meaning UnderstandAveragePool(Reader& r);
Meaning UnderstandMaxPool(Reader& r);
// understand_reduce.cc
Meaning UnderstandSoftmax(Reader& r);
Meaning UnderstandReduceSum(Reader& r);
Meaning UnderstandReduceMean(Reader& r);
Meaning UnderstandReduceMax(Reader& r);
Meaning UnderstandGlobalMaxPool(Reader& r);

}  // namespace tenon::optimizer
