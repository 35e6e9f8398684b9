// Operators that work element by element.
#include <unsupported/Eigen/SpecialFunctions>

#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

using dnnl::algorithm;

struct Function {
  algorithm what = algorithm::undef;
  float alpha = 0, beta = 0;
};

std::optional<Function> FunctionOf(const ops::Operator& op) {
  if (std::holds_alternative<ops::Neg>(op)) return Function{algorithm::eltwise_linear, -1, 0};
  if (std::holds_alternative<ops::Relu>(op)) return Function{algorithm::eltwise_relu};
  if (std::holds_alternative<ops::Sigmoid>(op)) return Function{algorithm::eltwise_logistic};
  if (std::holds_alternative<ops::Tanh>(op)) return Function{algorithm::eltwise_tanh};
  if (std::holds_alternative<ops::Exp>(op)) return Function{algorithm::eltwise_exp};
  if (std::holds_alternative<ops::Sqrt>(op)) return Function{algorithm::eltwise_sqrt};
  if (std::holds_alternative<ops::Reciprocal>(op)) return Function{algorithm::eltwise_pow, 1, -1};
  if (std::holds_alternative<ops::Silu>(op)) return Function{algorithm::eltwise_swish, 1};
  if (const auto* leaky = std::get_if<ops::LeakyRelu>(&op)) {
    return Function{algorithm::eltwise_relu, float(leaky->alpha)};
  }
  if (const auto* gelu = std::get_if<ops::Gelu>(&op)) {
    return Function{gelu->approximate == 1 ? algorithm::eltwise_gelu_tanh
                                           : algorithm::eltwise_gelu_erf};
  }
  return std::nullopt;
}

algorithm PairOf(const ops::Operator& op) {
  if (std::holds_alternative<ops::Add>(op)) return algorithm::binary_add;
  if (std::holds_alternative<ops::Sub>(op)) return algorithm::binary_sub;
  if (std::holds_alternative<ops::Mul>(op)) return algorithm::binary_mul;
  if (std::holds_alternative<ops::Div>(op)) return algorithm::binary_div;
  if (std::holds_alternative<ops::Max>(op)) return algorithm::binary_max;
  if (std::holds_alternative<ops::Min>(op)) return algorithm::binary_min;
  return algorithm::undef;
}

void MakeFunction(Kernel& kernel, const Function& f) {
  const Desc plain = Plain(DimsOf(kernel.operation().output));
  const dnnl::eltwise_forward::desc desc(dnnl::prop_kind::forward_inference, f.what, plain, f.alpha,
                                         f.beta);
  const dnnl::eltwise_forward::primitive_desc primitive(desc, kernel.library().engine);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC] = kernel.AddOperand(plain);
  arguments[DNNL_ARG_DST] = kernel.AddOutput(plain);
  kernel.Do(dnnl::eltwise_forward(primitive), std::move(arguments));
}

Desc Broadcast(const Operand& operand, std::size_t rank) {
  Dims dims = DimsOf(operand.extents);
  dims.insert(dims.begin(), rank - dims.size(), 1);
  return Plain(dims);
}

void MakePair(Kernel& kernel, algorithm what) {
  const Dims y = DimsOf(kernel.operation().output);
  const Desc a = Broadcast(kernel.operand(0), y.size()), b = Broadcast(kernel.operand(1), y.size());
  const dnnl::binary::primitive_desc primitive(dnnl::binary::desc(what, a, b, Plain(y)),
                                               kernel.library().engine);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC_0] = kernel.AddOperand(a);
  arguments[DNNL_ARG_SRC_1] = kernel.AddOperand(b);
  arguments[DNNL_ARG_DST] = kernel.AddOutput(Plain(y));
  kernel.Do(dnnl::binary(primitive), std::move(arguments));
}

// The maximum with the lower bound, and as its post-op the minimum with the upper one.
void MakeClip(Kernel& kernel) {
  const Dims y = DimsOf(kernel.operation().output);
  const Desc bound = Plain(Dims(y.size(), 1));
  dnnl::post_ops post;
  post.append_binary(algorithm::binary_min, bound);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post);
  const dnnl::binary::primitive_desc primitive(
      dnnl::binary::desc(algorithm::binary_max, Plain(y), bound, Plain(y)), attributes,
      kernel.library().engine);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC_0] = kernel.AddOperand(Plain(y));
  arguments[DNNL_ARG_SRC_1] = kernel.AddOperand(bound);
  arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1] = kernel.AddOperand(bound);
  arguments[DNNL_ARG_DST] = kernel.AddOutput(Plain(y));
  kernel.Do(dnnl::binary(primitive), std::move(arguments));
}

// The library has the error function in Gelu only.
void MakeErf(Kernel& kernel) {
  const Desc plain = Plain(DimsOf(kernel.operation().output));
  const dnnl::memory from = kernel.AddOperand(plain), to = kernel.AddOutput(plain);
  const auto count = Eigen::Index(plain.get_size() / sizeof(float));
  kernel.Do([from, to, count] {
    using Floats = Eigen::Map<Eigen::ArrayXf>;
    Floats x(static_cast<float*>(from.get_data_handle()), count);
    Floats(static_cast<float*>(to.get_data_handle()), count) = x.erf();
  });
}

}  // namespace

bool MakePointwise(Kernel& kernel) {
  const ops::Operator& op = kernel.operation().op;
  if (const std::optional<Function> f = FunctionOf(op)) {
    MakeFunction(kernel, *f);
  } else if (const algorithm pair = PairOf(op); pair != algorithm::undef) {
    MakePair(kernel, pair);
  } else if (std::holds_alternative<ops::Clip>(op)) {
    MakeClip(kernel);
  } else if (std::holds_alternative<ops::Erf>(op)) {
    MakeErf(kernel);
  } else {
    return false;
  }
  return true;
}

}  // namespace tenon::optimizer::cpu
