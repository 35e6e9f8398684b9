#include <fmt/core.h>

#include "optimizer/onnx/emit.h"
#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {

using graph::NodeId;

// A chain of new nodes; the last one has the name of the output.
class Emitter::Steps {
 public:
  Steps(Emitter& emitter, NodeId id, const std::string& out)
      : e_(emitter), dtype_(emitter.graph_.node(id).type->dtype), out_(out) {}

  std::string Number(double value) {
    onnx::TensorProto& t = e_.initializers_.emplace_back();
    t.set_name(e_.Fresh("tenon_number"));
    t.set_data_type(int(dtype_));
    t.set_raw_data(EncodeDoubles(dtype_, std::span(&value, 1)));
    return t.name();
  }
  std::string Add(std::string_view op_type, const Inputs& inputs) {
    const std::string name = e_.Fresh(fmt::format("{}_{}", out_, op_type));
    e_.Add(op_type, inputs, name);
    return name;
  }
  void Last(std::string_view op_type, const Inputs& inputs) { e_.Add(op_type, inputs, out_); }

  // The mean over the axes from `axis` on, which stay with extent 1.
  std::string MeanFrom(std::int64_t axis, int rank, const std::string& of) {
    const std::string name = e_.Fresh(out_ + "_ReduceMean");
    auto* axes = e_.Add("ReduceMean", {of}, name).add_attribute();
    axes->set_name("axes");
    axes->set_type(onnx::AttributeProto::INTS);
    for (std::int64_t a = axis; a < rank; ++a) axes->add_ints(a);
    return name;
  }
  // `x` / sqrt(mean of its square + epsilon).
  std::string Normalized(const std::string& x, std::int64_t axis, int rank, double epsilon) {
    const std::string mean = MeanFrom(axis, rank, Add("Mul", {x, x}));
    return Add("Div", {x, Add("Sqrt", {Add("Add", {mean, Number(epsilon)})})});
  }

 private:
  Emitter& e_;
  const graph::DataType dtype_;
  const std::string& out_;
};

Status Emitter::Expand(const ops::Silu&, NodeId id, const Inputs& in, const std::string& out) {
  Steps s(*this, id, out);
  s.Last("Mul", {in[0], s.Add("Sigmoid", {in[0]})});
  return OkStatus();
}

Status Emitter::Expand(const ops::Gelu& op, NodeId id, const Inputs& in, const std::string& out) {
  Steps s(*this, id, out);
  std::string inner;
  if (op.approximate == 1) {
    const std::string cube = s.Add("Mul", {s.Add("Mul", {in[0], in[0]}), in[0]});
    const std::string sum = s.Add("Add", {in[0], s.Add("Mul", {cube, s.Number(0.044715)})});
    inner = s.Add("Tanh", {s.Add("Mul", {sum, s.Number(0.7978845608028654)})});
  } else {
    if (opset_ < 9) {
      return base::FailedPrecondition(
          fmt::format("Gelu has no form in opset {}: there is no Erf", opset_));
    }
    inner = s.Add("Erf", {s.Add("Mul", {in[0], s.Number(0.7071067811865476)})});
  }
  s.Last("Mul", {s.Add("Mul", {in[0], s.Number(0.5)}), s.Add("Add", {inner, s.Number(1)})});
  return OkStatus();
}

Status Emitter::Expand(const ops::LayerNormalization& op, NodeId id, const Inputs& in,
                       const std::string& out) {
  Steps s(*this, id, out);
  const int rank = graph_.node(id).shape().size();
  const std::string off = s.Add("Sub", {in[0], s.MeanFrom(op.axis, rank, in[0])});
  const std::string normal = s.Normalized(off, op.axis, rank, op.epsilon);
  if (in.size() == 2) {
    s.Last("Mul", {normal, in[1]});
  } else {
    s.Last("Add", {s.Add("Mul", {normal, in[1]}), in[2]});
  }
  return OkStatus();
}

Status Emitter::Expand(const ops::RMSNormalization& op, NodeId id, const Inputs& in,
                       const std::string& out) {
  Steps s(*this, id, out);
  const int rank = graph_.node(id).shape().size();
  s.Last("Mul", {s.Normalized(in[0], op.axis, rank, op.epsilon), in[1]});
  return OkStatus();
}

}  // namespace tenon::optimizer
