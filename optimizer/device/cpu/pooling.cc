// AveragePool, MaxPool and, as a pool over the whole image, GlobalAveragePool.
#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

struct Pool {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  Dims kernel, strides, pads;
};

std::optional<Pool> PoolOf(const ops::Operator& op, const Dims& x) {
  if (const auto* average = std::get_if<ops::AveragePool>(&op)) {
    return Pool{average->count_include_pad == 1 ? dnnl::algorithm::pooling_avg_include_padding
                                                : dnnl::algorithm::pooling_avg_exclude_padding,
                ConstantsOf(average->kernel_shape), ConstantsOf(average->strides),
                ConstantsOf(average->pads)};
  }
  if (const auto* max = std::get_if<ops::MaxPool>(&op)) {
    return Pool{dnnl::algorithm::pooling_max, ConstantsOf(max->kernel_shape),
                ConstantsOf(max->strides), ConstantsOf(max->pads)};
  }
  if (std::holds_alternative<ops::GlobalAveragePool>(op) && x.size() == 4) {
    return Pool{dnnl::algorithm::pooling_avg_include_padding, {x[2], x[3]}, {1, 1}, {0, 0, 0, 0}};
  }
  return std::nullopt;
}

}  // namespace

bool MakePooling(Kernel& kernel) {
  const Operation& operation = kernel.operation();
  if (operation.operands.size() != 1) return false;
  const Dims x = DimsOf(kernel.operand(0).extents);
  const std::optional<Pool> pool = PoolOf(operation.op, x);
  if (!pool) return false;
  const dnnl::pooling_v2_forward::desc desc(
      dnnl::prop_kind::forward_inference, pool->algorithm, ImageLike(x),
      Any(DimsOf(operation.output)), pool->strides, pool->kernel, {0, 0},
      {pool->pads[0], pool->pads[1]}, {pool->pads[2], pool->pads[3]});
  const dnnl::pooling_v2_forward::primitive_desc primitive(desc, kernel.library().engine);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC] = kernel.AddOperand(primitive.src_desc());
  arguments[DNNL_ARG_DST] = kernel.AddOutput(primitive.dst_desc());
  kernel.Do(dnnl::pooling_v2_forward(primitive), std::move(arguments));
  return true;
}

}  // namespace tenon::optimizer::cpu
