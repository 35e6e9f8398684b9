// Conv: one primitive, whose post-ops are the residual (a sum in place) and the activation.
#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

// Kernels of several groups have the group as an axis of its own.
Dims WeightDims(const Dims& w, std::int64_t group) {
  if (group == 1) return w;
  return {group, w[0] / group, w[1], w[2], w[3]};
}

dnnl::primitive_attr AttributesOf(const ops::Conv& conv) {
  dnnl::post_ops post;
  if (conv.residual == 1) post.append_sum();
  if (conv.activation != ops::Activation::kNone) {
    post.append_eltwise(1, AlgorithmOf(conv.activation), 0, 0);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post);
  return attributes;
}

dnnl::convolution_forward::primitive_desc Describe(const Kernel& kernel, const ops::Conv& conv) {
  const Operation& operation = kernel.operation();
  const Dims dilations = ConstantsOf(conv.dilations), pads = ConstantsOf(conv.pads);
  const Dims w = WeightDims(DimsOf(kernel.operand(1).extents), conv.group.constant());
  const Desc x = Any(DimsOf(kernel.operand(0).extents)), y = Any(DimsOf(operation.output));
  const Desc weights = kernel.operand(1).weight ? Any(w) : Plain(w);
  const Dims strides = ConstantsOf(conv.strides), extra{dilations[0] - 1, dilations[1] - 1};
  const Dims before{pads[0], pads[1]}, after{pads[2], pads[3]};
  using Forward = dnnl::convolution_forward;
  constexpr auto kKind = dnnl::prop_kind::forward_inference;
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  const Forward::desc desc =
      conv.HasBias(int(operation.operands.size()))
          ? Forward::desc(kKind, kDirect, x, weights, Plain({w.size() == 5 ? w[0] * w[1] : w[0]}),
                          y, strides, extra, before, after)
          : Forward::desc(kKind, kDirect, x, weights, y, strides, extra, before, after);
  return {desc, AttributesOf(conv), kernel.library().engine};
}

}  // namespace

bool MakeConvolution(Kernel& kernel) {
  const auto* conv = std::get_if<ops::Conv>(&kernel.operation().op);
  if (conv == nullptr) return false;
  const auto desc = Describe(kernel, *conv);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC] = kernel.AddOperand(desc.src_desc());
  arguments[DNNL_ARG_WEIGHTS] = kernel.AddOperand(desc.weights_desc());
  if (conv->HasBias(int(kernel.operation().operands.size()))) {
    arguments[DNNL_ARG_BIAS] = kernel.AddOperand(desc.bias_desc());
  }
  arguments[DNNL_ARG_DST] = kernel.AddOutput(desc.dst_desc());
  // Each run adds the product to what the one before left: the values grow, the work does not.
  if (conv->residual == 1) kernel.ShareOperand(arguments[DNNL_ARG_DST]);
  kernel.Do(dnnl::convolution_forward(desc), std::move(arguments));
  return true;
}

}  // namespace tenon::optimizer::cpu
