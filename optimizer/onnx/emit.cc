#include "optimizer/onnx/emit.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "core/eval/eval.h"
#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {
namespace {

using graph::NodeId;
using ops::Short;
using ops::Size;
using IntList = std::vector<std::int64_t>;

// Constants up to this many elements become initializers, larger ones a ConstantOfShape.
constexpr std::int64_t kInitializerElements = 1 << 16;

void SetInt(onnx::NodeProto& node, const char* name, std::int64_t value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(value);
}
void SetInts(onnx::NodeProto& node, const char* name, const IntList& values) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (std::int64_t v : values) a->add_ints(v);
}
void SetFloat(onnx::NodeProto& node, const char* name, double value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_f(float(value));
}

bool Constant(const Short<Size>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const Size& s) { return s.is_constant(); });
}
IntList Values(const Short<Size>& sizes) {
  IntList out;
  for (const Size& s : sizes) out.push_back(s.constant());
  return out;
}

Status NoForm(std::string_view op, int opset, std::string_view why) {
  return base::FailedPrecondition(fmt::format("{} has no form in opset {}: {}", op, opset, why));
}
Status Symbolic(std::string_view op) {
  return base::FailedPrecondition(
      fmt::format("{} has a size that is known at run time only, and ONNX wants a number", op));
}

// A target for ONNX's Reshape: an entry 0 copies the input's extent, one -1 is what is left.
std::optional<IntList> ReshapeTarget(const graph::Shape& from, const Short<Size>& to) {
  IntList out;
  bool rest = false;
  for (int a = 0; a < to.size(); ++a) {
    if (to[a].is_constant()) {
      out.push_back(to[a].constant());
    } else if (a < from.size() && from[a] == to[a]) {
      out.push_back(0);
    } else if (!rest) {
      out.push_back(-1);
      rest = true;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::string Emitter::Fresh(std::string_view hint) {
  std::string name(hint);
  for (int k = 1; !taken_.insert(name).second; ++k) name = fmt::format("{}_{}", hint, k);
  return name;
}

onnx::NodeProto& Emitter::Add(std::string_view op_type, const Inputs& inputs,
                              const std::string& output) {
  onnx::NodeProto& node = nodes_.emplace_back();
  node.set_op_type(std::string(op_type));
  node.set_name(fmt::format("{}_{}", output, op_type));
  for (const std::string& name : inputs) node.add_input(name);
  if (!output.empty()) node.add_output(output);
  return node;
}

std::string Emitter::Ints(const std::vector<std::int64_t>& values) {
  std::string& name = ints_[values];
  if (!name.empty()) return name;
  name = Fresh("tenon_ints");
  onnx::TensorProto& t = initializers_.emplace_back();
  t.set_name(name);
  t.set_data_type(onnx::TensorProto::INT64);
  t.add_dims(std::int64_t(values.size()));
  for (std::int64_t v : values) t.add_int64_data(v);
  return name;
}

void Emitter::EmitIdentity(const std::string& input, const std::string& output) {
  Add("Identity", {input}, output);
}

void Emitter::EmitSplit(const std::string& input, std::int64_t axis,
                        const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = Add("Split", {input}, outputs[0]);
  for (std::size_t k = 1; k < outputs.size(); ++k) node.add_output(outputs[k]);
  SetInt(node, "axis", axis);
}

// One overload an operator. Those whose ONNX form is the bare operator share the generic one.
struct Emitter::OperatorCase {
  Emitter& e;
  NodeId id;
  const Inputs& in;
  const std::string& out;

  const graph::Node& node() const { return e.graph_.node(id); }
  const graph::Shape& operand(int k) const {
    return e.graph_.shape(node().operands[std::size_t(k)]);
  }

  // Of a scalar: ONNX refuses attributes without entries.
  Status Nothing() const {
    e.EmitIdentity(in[0], out);
    return OkStatus();
  }

  template <class Op>
  Status operator()(const Op&) const {
    constexpr std::size_t kAttributes = std::tuple_size_v<decltype(Op::Fields())>;
    if constexpr (kAttributes > 0 || Op::kInfo.onnx.op_type.empty()) {
      return base::FailedPrecondition(fmt::format(
          "{} cannot be written to an ONNX file: optimizer/onnx/emit.cc has no case for it",
          Op::kInfo.name));
    } else {
      if (e.opset_ < Op::kInfo.onnx.since_opset) {
        return NoForm(Op::kInfo.name, e.opset_, "the operator came later");
      }
      e.Add(Op::kInfo.onnx.op_type, in, out);
      return OkStatus();
    }
  }

  Status operator()(const ops::LeakyRelu& op) const {
    SetFloat(e.Add("LeakyRelu", in, out), "alpha", op.alpha);
    return OkStatus();
  }

  // Before opset 11 the bounds are attributes; bounds that are computed make a Max and a Min.
  Status operator()(const ops::Clip&) const {
    if (e.opset_ >= 11) {
      e.Add("Clip", in, out);
      return OkStatus();
    }
    const auto bound = [&](int k) -> const ops::Fill* {
      const graph::Node& n = e.graph_.node(node().operands[std::size_t(k)]);
      return n.is_input() ? nullptr : std::get_if<ops::Fill>(n.op.get());
    };
    if (bound(1) != nullptr && bound(2) != nullptr) {
      onnx::NodeProto& n = e.Add("Clip", {in[0]}, out);
      SetFloat(n, "min", bound(1)->value);
      SetFloat(n, "max", bound(2)->value);
      return OkStatus();
    }
    if (e.opset_ < 8) return NoForm("Clip", e.opset_, "its bounds are computed");
    const std::string above = e.Fresh(out + "_above");
    e.Add("Max", {in[0], in[1]}, above);
    e.Add("Min", {above, in[2]}, out);
    return OkStatus();
  }

  Status operator()(const ops::Silu& op) const { return e.Expand(op, id, in, out); }
  Status operator()(const ops::Gelu& op) const { return e.Expand(op, id, in, out); }
  Status operator()(const ops::RMSNormalization& op) const { return e.Expand(op, id, in, out); }
  // Parameters of other shapes are allowed and not widely implemented.
  Status operator()(const ops::LayerNormalization& op) const {
    bool fits = e.opset_ >= 17;
    for (int k = 1; k < int(in.size()); ++k) {
      const int first = int(op.axis), rank = operand(0).size();
      fits = fits && operand(k).size() == rank - first;
      for (int a = first; fits && a < rank; ++a) fits = operand(k)[a - first] == operand(0)[a];
    }
    if (!fits) return e.Expand(op, id, in, out);
    onnx::NodeProto& n = e.Add("LayerNormalization", in, out);
    SetInt(n, "axis", op.axis);
    SetFloat(n, "epsilon", op.epsilon);
    return OkStatus();
  }

  Status operator()(const ops::Transpose& op) const {
    if (op.perm.empty()) return Nothing();
    SetInts(e.Add("Transpose", in, out), "perm", IntList(op.perm.begin(), op.perm.end()));
    return OkStatus();
  }

  Status operator()(const ops::Concat& op) const {
    SetInt(e.Add("Concat", in, out), "axis", op.axis);
    return OkStatus();
  }

  // A part that stands alone; Emitter::EmitSplit makes all of them.
  Status operator()(const ops::Split& op) const {
    const Size& whole = operand(0)[int(op.axis)];
    if (!whole.is_constant()) return Symbolic("Split");
    const std::int64_t part = whole.constant() / op.parts;
    return Slice(op.axis, op.index * part, (op.index + 1) * part, 1);
  }

  Status operator()(const ops::Slice& op) const {
    const Size& extent = operand(0)[int(op.axis)];
    if (!op.start.is_constant()) return Symbolic("Slice");
    if (op.end.is_constant())
      return Slice(op.axis, op.start.constant(), op.end.constant(), op.step);
    if (!(op.end == extent)) return Symbolic("Slice");
    return Slice(op.axis, op.start.constant(), std::numeric_limits<std::int64_t>::max(), op.step);
  }
  Status Slice(std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) const {
    if (e.opset_ < 10) {
      if (step != 1) return NoForm("Slice", e.opset_, "it has steps");
      onnx::NodeProto& n = e.Add("Slice", in, out);
      SetInts(n, "starts", {start});
      SetInts(n, "ends", {end});
      SetInts(n, "axes", {axis});
      return OkStatus();
    }
    Inputs inputs{in[0], e.Ints({start}), e.Ints({end}), e.Ints({axis})};
    if (step != 1) inputs.push_back(e.Ints({step}));
    e.Add("Slice", inputs, out);
    return OkStatus();
  }

  Status operator()(const ops::Pad& op) const {
    if (!Constant(op.begins) || !Constant(op.ends)) return Symbolic("Pad");
    auto pads = Values(op.begins);
    for (std::int64_t v : Values(op.ends)) pads.push_back(v);
    return Pad(pads);
  }
  Status Pad(const IntList& pads) const {
    if (pads.empty()) return Nothing();
    if (e.opset_ < 11) {
      SetInts(e.Add("Pad", in, out), "pads", pads);
    } else {
      e.Add("Pad", {in[0], e.Ints(pads)}, out);
    }
    return OkStatus();
  }

  Status operator()(const ops::Enlarge&) const {
    IntList pads(8, 0);
    for (int a = 2; a < 4; ++a) {
      const Size growth = node().shape()[a] - operand(0)[a];
      if (!growth.is_constant()) return Symbolic("Enlarge");
      pads[std::size_t(a)] = pads[std::size_t(4 + a)] = growth.constant() / 2;
    }
    return Pad(pads);
  }

  Status operator()(const ops::Reshape& op) const {
    const auto target = ReshapeTarget(operand(0), op.shape);
    if (!target) return Symbolic("Reshape");
    e.Add("Reshape", {in[0], e.Ints(*target)}, out);
    return OkStatus();
  }

  Status operator()(const ops::ReduceSum& op) const {
    onnx::NodeProto* n = nullptr;
    if (e.opset_ >= 13) {
      n = &e.Add("ReduceSum", {in[0], e.Ints({op.axis})}, out);
    } else {
      n = &e.Add("ReduceSum", in, out);
      SetInts(*n, "axes", {op.axis});
    }
    SetInt(*n, "keepdims", op.keepdims);
    return OkStatus();
  }
  Status operator()(const ops::ReduceMean& op) const { return Reduced("ReduceMean", op); }
  Status operator()(const ops::ReduceMax& op) const { return Reduced("ReduceMax", op); }
  template <class Op>
  Status Reduced(std::string_view type, const Op& op) const {
    onnx::NodeProto& n = e.Add(type, in, out);
    SetInts(n, "axes", {op.axis});
    SetInt(n, "keepdims", op.keepdims);
    return OkStatus();
  }

  // Before opset 13 Softmax runs over all axes from `axis` on, so the axis is made the last.
  Status operator()(const ops::Softmax& op) const {
    const int rank = operand(0).size();
    if (e.opset_ >= 13 || op.axis == rank - 1) {
      SetInt(e.Add("Softmax", in, out), "axis", op.axis);
      return OkStatus();
    }
    IntList perm;  // Exchanges two axes: its own inverse.
    for (int a = 0; a < rank; ++a) perm.push_back(a);
    std::swap(perm[std::size_t(op.axis)], perm.back());
    const std::string before = e.Fresh(out + "_moved"), after = e.Fresh(out + "_softmax");
    SetInts(e.Add("Transpose", in, before), "perm", perm);
    SetInt(e.Add("Softmax", {before}, after), "axis", rank - 1);
    SetInts(e.Add("Transpose", {after}, out), "perm", perm);
    return OkStatus();
  }

  // The residual and the activation become nodes of their own.
  Status operator()(const ops::Conv& op) const {
    if (!Constant(op.strides) || !Constant(op.pads) || !Constant(op.dilations) ||
        !op.group.is_constant()) {
      return Symbolic("Conv");
    }
    const bool activated = op.activation != ops::Activation::kNone;
    const std::string sum = activated ? e.Fresh(out + "_linear") : out;
    const std::string conv = op.residual == 1 ? e.Fresh(out + "_conv") : sum;
    Inputs operands = in;
    if (op.residual == 1) operands.pop_back();
    onnx::NodeProto& n = e.Add("Conv", operands, conv);
    if (operand(1)[2].is_constant() && operand(1)[3].is_constant()) {
      SetInts(n, "kernel_shape", {operand(1)[2].constant(), operand(1)[3].constant()});
    }
    SetInts(n, "strides", Values(op.strides));
    SetInts(n, "pads", Values(op.pads));
    SetInts(n, "dilations", Values(op.dilations));
    SetInt(n, "group", op.group.constant());
    if (op.residual == 1) e.Add("Add", {conv, in.back()}, sum);
    switch (op.activation) {
      case ops::Activation::kNone:
        break;
      case ops::Activation::kRelu:
        e.Add("Relu", {sum}, out);
        break;
      case ops::Activation::kSigmoid:
        e.Add("Sigmoid", {sum}, out);
        break;
      case ops::Activation::kTanh:
        e.Add("Tanh", {sum}, out);
        break;
    }
    return OkStatus();
  }

  template <class Op>
  Status Pool(std::string_view type, const Op& op) const {
    if (!Constant(op.kernel_shape) || !Constant(op.strides) || !Constant(op.pads)) {
      return Symbolic(type);
    }
    onnx::NodeProto& n = e.Add(type, in, out);
    SetInts(n, "kernel_shape", Values(op.kernel_shape));
    SetInts(n, "strides", Values(op.strides));
    SetInts(n, "pads", Values(op.pads));
    return OkStatus();
  }
  Status operator()(const ops::MaxPool& op) const { return Pool("MaxPool", op); }
  Status operator()(const ops::AveragePool& op) const {
    RETURN_IF_ERROR(Pool("AveragePool", op));
    SetInt(e.nodes_.back(), "count_include_pad", op.count_include_pad);
    return OkStatus();
  }

  Status operator()(const ops::BatchNormalization& op) const {
    SetFloat(e.Add("BatchNormalization", in, out), "epsilon", op.epsilon);
    return OkStatus();
  }

  Status operator()(const ops::Fill& op) const {
    if (!Constant(op.shape)) return Symbolic("Fill");
    const graph::Extents extents = graph::Concrete(node().shape());
    if (graph::ElementCount(extents) <= kInitializerElements || e.opset_ < 9) return Constants();
    const auto dims = Values(op.shape);
    auto* a = e.Add("ConstantOfShape", {e.Ints(dims)}, out).add_attribute();
    a->set_name("value");
    a->set_type(onnx::AttributeProto::TENSOR);
    a->mutable_t()->add_dims(1);
    a->mutable_t()->set_data_type(int(node().type->dtype));
    a->mutable_t()->set_raw_data(EncodeDoubles(node().type->dtype, std::span(&op.value, 1)));
    return OkStatus();
  }
  Status operator()(const ops::Eye&) const { return Constants(); }
  Status operator()(const ops::ConvIdentity&) const { return Constants(); }
  Status operator()(const ops::PoolKernel&) const { return Constants(); }
  // The constant as an initializer of the name `out`.
  Status Constants() const {
    if (!graph::IsConcrete(node().shape())) return Symbolic(ops::NameOf(*node().op));
    ASSIGN_OR_RETURN(const eval::Tensor<double> value,
                     eval::Apply(*node().op, std::span<const eval::Tensor<double>* const>()));
    onnx::TensorProto& t = e.initializers_.emplace_back();
    t.set_name(out);
    t.set_data_type(int(node().type->dtype));
    for (std::int64_t n : value.extents) t.add_dims(n);
    t.set_raw_data(EncodeDoubles(node().type->dtype, value.data));
    return OkStatus();
  }

  Status operator()(const ops::Opaque&) const {
    return base::Internal("an opaque node has no form of its own");
  }
};

Status Emitter::Emit(NodeId id, const std::vector<std::string>& inputs, const std::string& output) {
  return std::visit(OperatorCase{*this, id, inputs, output}, *graph_.node(id).op);
}

}  // namespace tenon::optimizer
