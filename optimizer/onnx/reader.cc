#include "optimizer/onnx/reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

int Reader::output_count() const { return node_.output_size(); }

bool Reader::HasOutput(int k) const { return k < node_.output_size() && !node_.output(k).empty(); }

const onnx::AttributeProto* Reader::Find(std::string_view name) const {
  for (const auto& a : node_.attribute()) {
    if (a.name() == name) return &a;
  }
  return nullptr;
}

std::int64_t Reader::Int(std::string_view name, std::int64_t otherwise) const {
  const auto* a = Find(name);
  return a == nullptr ? otherwise : a->i();
}

double Reader::Float(std::string_view name, double otherwise) const {
  const auto* a = Find(name);
  return a == nullptr ? otherwise : double(a->f());
}

std::string Reader::String(std::string_view name, std::string_view otherwise) const {
  const auto* a = Find(name);
  return a == nullptr ? std::string(otherwise) : a->s();
}

std::optional<std::vector<std::int64_t>> Reader::Ints(std::string_view name) const {
  const auto* a = Find(name);
  if (a == nullptr) return std::nullopt;
  return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
}

const onnx::TensorProto* Reader::Constant(int k) const {
  if (k >= node_.input_size() || node_.input(k).empty()) return nullptr;
  return constants_(node_.input(k));
}

std::optional<std::vector<std::int64_t>> Reader::ConstantInts(int k) const {
  const onnx::TensorProto* t = Constant(k);
  if (t == nullptr || t->dims_size() > 1) return std::nullopt;
  const int type = t->data_type();
  if (type != onnx::TensorProto::INT64 && type != onnx::TensorProto::INT32) return std::nullopt;
  auto values = ReadInts(*t, folder_);
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

std::optional<double> Reader::ConstantScalar(int k) const {
  const onnx::TensorProto* t = Constant(k);
  if (t == nullptr) return std::nullopt;
  if (t->data_type() == onnx::TensorProto::BOOL) {
    const auto bytes = ReadBytes(*t, folder_);
    if (!bytes.ok() || bytes->size() != 1) return std::nullopt;
    return (*bytes)[0] != 0 ? 1 : 0;
  }
  if (!graph::IsFloating(ToDataType(t->data_type()))) return std::nullopt;
  const auto values = ReadDoubles(*t, folder_);
  if (!values.ok() || values->size() != 1) return std::nullopt;
  return (*values)[0];
}

std::optional<std::int64_t> Reader::Axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

NodeId Reader::Add(const ops::Operator& op, const std::vector<NodeId>& operands) {
  if (std::ranges::find(operands, kNoNode) != operands.end()) return kNoNode;
  const auto dtype = graph_.node(in(0)).type->dtype;
  const auto id = graph_.Add(op, operands, dtype);
  if (!id.ok()) return Refuse(base::Message(id.status()));
  if (const auto& all = graph_.node(*id).requirements; all != nullptr) {
    for (const base::Condition& c : *all) {
      if (!HoldsForAllSizes(c)) return Refuse("whether the sizes fit is known at run time only");
    }
  }
  return *id;
}

// Extents are at least 1, so a sum that grows with each of them has its least value there.
bool Reader::HoldsForAllSizes(const base::Condition& c) const {
  if (c.kind != base::Condition::Kind::kGe0 || !c.p.valid()) return false;
  std::int64_t least = 0;
  for (const base::Poly::Term& term : c.p.terms()) {
    bool constant = true;
    for (base::Symbol s : term.monomial) {
      if (s != 0 && graph_.symbols().kind(s) != base::SymbolKind::kDim) return false;
      constant = constant && s == 0;
    }
    if (term.coefficient < 0 && !constant) return false;
    if (__builtin_add_overflow(least, term.coefficient, &least)) return false;
  }
  return least >= 0;
}

NodeId Reader::Scalar(double value) {
  if (!std::isfinite(value)) return Refuse("a factor is not finite");
  return Add(ops::Fill{.shape = {}, .value = value}, std::vector<NodeId>{});
}

NodeId Reader::Refuse(std::string_view why) {
  if (refusal_.empty()) refusal_ = why;
  return kNoNode;
}

bool IsAlias(const Reader& r, std::string_view op_type) {
  if (op_type == "Identity") return true;
  // Dropout drops nothing at inference; from opset 12 on an input may ask for training. With a
  // mask as second output the node is opaque.
  if (op_type != "Dropout" || r.HasOutput(1)) return false;
  return r.opset() < 12 || !r.HasInput(2) || r.ConstantScalar(2) == 0;
}

Hook HookOf(std::string_view op_type) {
  static constexpr std::pair<std::string_view, Hook> kHooks[] = {
      {"Add", [](Reader& r) { return UnderstandPointwise(r, ops::Add{}); }},
      {"Sub", [](Reader& r) { return UnderstandPointwise(r, ops::Sub{}); }},
      {"Mul", [](Reader& r) { return UnderstandPointwise(r, ops::Mul{}); }},
      {"Neg", [](Reader& r) { return UnderstandPointwise(r, ops::Neg{}); }},
      {"Relu", [](Reader& r) { return UnderstandPointwise(r, ops::Relu{}); }},
      {"Sigmoid", [](Reader& r) { return UnderstandPointwise(r, ops::Sigmoid{}); }},
      {"Tanh", [](Reader& r) { return UnderstandPointwise(r, ops::Tanh{}); }},
      {"Exp", [](Reader& r) { return UnderstandPointwise(r, ops::Exp{}); }},
      {"Reciprocal", [](Reader& r) { return UnderstandPointwise(r, ops::Reciprocal{}); }},
      {"Div", [](Reader& r) { return UnderstandPointwise(r, ops::Div{}); }},
      {"Sqrt", [](Reader& r) { return UnderstandPointwise(r, ops::Sqrt{}); }},
      {"Erf", [](Reader& r) { return UnderstandPointwise(r, ops::Erf{}); }},
      {"LeakyRelu", UnderstandLeakyRelu},
      {"Clip", UnderstandClip},
      {"Pow", UnderstandPow},
      {"Sum", [](Reader& r) { return UnderstandFold(r, ops::Add{}); }},
      {"Max", [](Reader& r) { return UnderstandFold(r, ops::Max{}); }},
      {"Min", [](Reader& r) { return UnderstandFold(r, ops::Min{}); }},
      {"LayerNormalization", UnderstandLayerNormalization},
      {"BatchNormalization", UnderstandBatchNormalization},
      {"MatMul", UnderstandMatMul},
      {"Gemm", UnderstandGemm},
      {"Transpose", UnderstandTranspose},
      {"Concat", UnderstandConcat},
      {"Split", UnderstandSplit},
      {"Slice", UnderstandSlice},
      {"Pad", UnderstandPad},
      {"Reshape", UnderstandReshape},
      {"Flatten", UnderstandFlatten},
      {"Squeeze", UnderstandSqueeze},
      {"Unsqueeze", UnderstandUnsqueeze},
      {"Conv", UnderstandConv},
      {"AveragePool", UnderstandAveragePool},
      {"MaxPool", UnderstandMaxPool},
      {"GlobalAveragePool",
       [](Reader& r) { return UnderstandPointwise(r, ops::GlobalAveragePool{}); }},
      {"GlobalMaxPool", UnderstandGlobalMaxPool},
      {"Softmax", UnderstandSoftmax},
      {"ReduceSum", UnderstandReduceSum},
      {"ReduceMean", UnderstandReduceMean},
      {"ReduceMax", UnderstandReduceMax},
  };
  for (const auto& [name, hook] : kHooks) {
    if (name == op_type) return hook;
  }
  return nullptr;
}

}  // namespace tenon::optimizer
