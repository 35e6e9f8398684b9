// Sums, means and maxima along an axis; GlobalAveragePool of tensors that are no images.
#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

struct Fold {
  dnnl::algorithm what = dnnl::algorithm::undef;
  std::size_t first = 0, end = 0;  // The axes.
};

std::optional<Fold> FoldOf(const ops::Operator& op, std::size_t rank) {
  const auto along = [](dnnl::algorithm what, std::int64_t axis) {
    return Fold{what, std::size_t(axis), std::size_t(axis) + 1};
  };
  if (const auto* sum = std::get_if<ops::ReduceSum>(&op)) {
    return along(dnnl::algorithm::reduction_sum, sum->axis);
  }
  if (const auto* mean = std::get_if<ops::ReduceMean>(&op)) {
    return along(dnnl::algorithm::reduction_mean, mean->axis);
  }
  if (const auto* max = std::get_if<ops::ReduceMax>(&op)) {
    return along(dnnl::algorithm::reduction_max, max->axis);
  }
  if (std::holds_alternative<ops::GlobalAveragePool>(op)) {
    return Fold{dnnl::algorithm::reduction_mean, 2, rank};
  }
  return std::nullopt;
}

}  // namespace

bool MakeReduction(Kernel& kernel) {
  if (kernel.operation().operands.size() != 1) return false;
  const Dims x = DimsOf(kernel.operand(0).extents);
  const std::optional<Fold> fold = FoldOf(kernel.operation().op, x.size());
  if (!fold) return false;
  Dims y = x;
  for (std::size_t a = fold->first; a < fold->end; ++a) y[a] = 1;
  const dnnl::memory from = kernel.AddOperand(Plain(x)), to = kernel.AddOutput(Plain(y));
  if (x == y) {  // The library refuses to fold nothing.
    kernel.Do(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    return true;
  }
  const dnnl::reduction::primitive_desc primitive(
      dnnl::reduction::desc(fold->what, Plain(x), Plain(y), 0, 0), kernel.library().engine);
  kernel.Do(dnnl::reduction(primitive), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  return true;
}

}  // namespace tenon::optimizer::cpu
