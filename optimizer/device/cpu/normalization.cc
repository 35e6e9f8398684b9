// Softmax and the normalizations. RMSNormalization is a loop of our own: the library has none.
#include <Eigen/Core>

#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

constexpr auto kInference = dnnl::prop_kind::forward_inference;
using Flags = dnnl::normalization_flags;

void MakeSoftmax(Kernel& kernel, const ops::Softmax& softmax) {
  const Desc plain = Plain(DimsOf(kernel.operation().output));
  const dnnl::softmax_v2_forward::desc desc(kInference, dnnl::algorithm::softmax_accurate, plain,
                                            plain, int(softmax.axis));
  const dnnl::softmax_v2_forward::primitive_desc primitive(desc, kernel.library().engine);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC] = kernel.AddOperand(plain);
  arguments[DNNL_ARG_DST] = kernel.AddOutput(plain);
  kernel.Do(dnnl::softmax_v2_forward(primitive), std::move(arguments));
}

void MakeBatch(Kernel& kernel, const ops::BatchNormalization& batch) {
  const Desc x = ImageLike(DimsOf(kernel.operation().output));
  const dnnl::batch_normalization_forward::desc desc(
      kInference, x, float(batch.epsilon),
      Flags::use_global_stats | Flags::use_scale | Flags::use_shift);
  const dnnl::batch_normalization_forward::primitive_desc primitive(desc, kernel.library().engine);
  const Desc channels = Plain({x.dims()[1]});
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC] = kernel.AddOperand(x);
  for (const int which : {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE}) {
    arguments[which] = kernel.AddOperand(channels);
  }
  arguments[DNNL_ARG_DST] = kernel.AddOutput(x);
  kernel.Do(dnnl::batch_normalization_forward(primitive), std::move(arguments));
}

// Rows of what is normalized together; nothing unless the parameters are one row each.
std::optional<Dims> RowsOf(const Kernel& kernel, std::int64_t axis) {
  Dims rows{1, 1};
  const graph::Extents& x = kernel.operation().output;
  for (int a = 0; a < x.size(); ++a) rows[a < axis ? 0 : 1] *= x[a];
  for (int k = 1; k < int(kernel.operation().operands.size()); ++k) {
    const graph::Extents& own = kernel.operand(k).extents;
    if (graph::ElementCount(own) != rows[1]) return std::nullopt;
    // All axes of the row, so no broadcast inside of it.
    for (int a = 0; a < own.size(); ++a) {
      if (own[a] != 1 && own[a] != x[x.size() - own.size() + a]) return std::nullopt;
    }
  }
  return rows;
}

bool MakeLayer(Kernel& kernel, const ops::LayerNormalization& layer) {
  const std::optional<Dims> rows = RowsOf(kernel, layer.axis);
  if (!rows) return false;
  const bool shifts = kernel.operation().operands.size() == 3;
  const Desc x = Plain(*rows), row = Plain({(*rows)[1]});
  const dnnl::layer_normalization_forward::desc desc(
      kInference, x, float(layer.epsilon),
      shifts ? Flags::use_scale | Flags::use_shift : Flags::use_scale);
  const dnnl::layer_normalization_forward::primitive_desc primitive(desc, kernel.library().engine);
  std::unordered_map<int, dnnl::memory> arguments;
  arguments[DNNL_ARG_SRC] = kernel.AddOperand(x);
  arguments[DNNL_ARG_SCALE] = kernel.AddOperand(row);
  if (shifts) arguments[DNNL_ARG_SHIFT] = kernel.AddOperand(row);
  arguments[DNNL_ARG_DST] = kernel.AddOutput(x);
  kernel.Do(dnnl::layer_normalization_forward(primitive), std::move(arguments));
  return true;
}

bool MakeRms(Kernel& kernel, const ops::RMSNormalization& rms) {
  const std::optional<Dims> rows = RowsOf(kernel, rms.axis);
  if (!rows) return false;
  const dnnl::memory x = kernel.AddOperand(Plain(*rows));
  const dnnl::memory scale = kernel.AddOperand(Plain({(*rows)[1]}));
  const dnnl::memory y = kernel.AddOutput(Plain(*rows));
  kernel.Do([x, scale, y, count = (*rows)[0], width = (*rows)[1], epsilon = float(rms.epsilon)] {
    using Row = Eigen::Map<Eigen::ArrayXf>;
    const Row scales(static_cast<float*>(scale.get_data_handle()), width);
    for (std::int64_t k = 0; k < count; ++k) {
      const Row from(static_cast<float*>(x.get_data_handle()) + k * width, width);
      Row to(static_cast<float*>(y.get_data_handle()) + k * width, width);
      to = from * (1 / std::sqrt(from.square().mean() + epsilon)) * scales;
    }
  });
  return true;
}

}  // namespace

bool MakeNormalization(Kernel& kernel) {
  const ops::Operator& op = kernel.operation().op;
  if (const auto* softmax = std::get_if<ops::Softmax>(&op)) {
    MakeSoftmax(kernel, *softmax);
    return true;
  }
  if (const auto* batch = std::get_if<ops::BatchNormalization>(&op)) {
    MakeBatch(kernel, *batch);
    return true;
  }
  if (const auto* layer = std::get_if<ops::LayerNormalization>(&op)) {
    return MakeLayer(kernel, *layer);
  }
  if (const auto* rms = std::get_if<ops::RMSNormalization>(&op)) return MakeRms(kernel, *rms);
  return false;
}

}  // namespace tenon::optimizer::cpu
