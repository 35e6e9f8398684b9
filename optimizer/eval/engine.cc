#include "optimizer/eval/engine.h"

#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/eval/eval.h"
#include "optimizer/eval/kernels.h"

namespace tenon::optimizer {
namespace {

// One overload an operator (or a kind of them).
struct Case {
  const ops::Operator& op;
  std::span<const Values* const> in;
  Values& out;

  const Values& x() const { return *in[0]; }

  // A part of x from `offset` elements on, every step[a]-th position of axis a.
  void Part(std::int64_t axis, std::int64_t start, std::int64_t step) const {
    Extents strides = StridesOf(x().extents);
    const std::int64_t offset = start * strides[int(axis)];
    strides[int(axis)] *= step;
    CopyStrided(x().data.data() + offset, strides, out);
  }

  template <class Op>
  void operator()(const Op& o) const {
    constexpr ops::Info info = Op::kInfo;
    if constexpr (info.nature == ops::Nature::kPointwise && info.arity_max == 1) {
      if (Unary(op, x(), out)) return;
    } else if constexpr (info.nature == ops::Nature::kPointwise && info.arity_max == 2) {
      if (Binary(op, x(), *in[1], out)) return;
    }
    // No kernel: the definition, slow and right.
    StatusOr<Values> defined = eval::Apply(ops::Operator(o), in);
    CHECK(defined.ok());  // The operator fits its operands.
    out = *std::move(defined);
  }
  void operator()(const ops::Clip&) const { Clip(in[1]->data[0], in[2]->data[0], x(), out); }
  void operator()(const ops::BatchNormalization& o) const { BatchNormalize(o, in, out); }
  void operator()(const ops::LayerNormalization& o) const {
    Normalize(o.axis, o.epsilon, /*centred=*/true, in, out);
  }
  void operator()(const ops::RMSNormalization& o) const {
    Normalize(o.axis, o.epsilon, /*centred=*/false, in, out);
  }
  void operator()(const ops::MatMul&) const { MatMul(x(), *in[1], out); }
  void operator()(const ops::Transpose& o) const {
    const Extents from = StridesOf(x().extents);
    Extents strides = from;
    for (int a = 0; a < from.size(); ++a) strides[a] = from[int(o.perm[a])];
    CopyStrided(x().data.data(), strides, out);
  }
  void operator()(const ops::Concat& o) const {
    Extents at = Extents::Filled(out.extents.size(), 0);
    for (const Values* part : in) {
      CopyInto(*part, at, out);
      at[int(o.axis)] += part->extents[int(o.axis)];
    }
  }
  void operator()(const ops::Split& o) const {
    Part(o.axis, o.index * out.extents[int(o.axis)], 1);
  }
  void operator()(const ops::Slice& o) const { Part(o.axis, o.start.constant(), o.step); }
  void operator()(const ops::Pad& o) const {
    Extents at;
    for (const ops::Size& begin : o.begins) at.push_back(begin.constant());
    CopyInto(x(), at, out);
  }
  void operator()(const ops::Enlarge&) const {
    Extents at = Extents::Filled(4, 0);
    for (int a = 2; a < 4; ++a) at[a] = (out.extents[a] - x().extents[a]) / 2;
    CopyInto(x(), at, out);
  }
  void operator()(const ops::Reshape&) const { out.data = x().data; }
  void operator()(const ops::ReduceSum& o) const { ReduceSum(o.axis, 1, x(), out); }
  void operator()(const ops::ReduceMean& o) const {
    ReduceSum(o.axis, 1 / double(x().extents[int(o.axis)]), x(), out);
  }
  void operator()(const ops::ReduceMax& o) const { ReduceMax(o.axis, x(), out); }
  void operator()(const ops::GlobalAveragePool&) const { GlobalAveragePool(x(), out); }
  void operator()(const ops::Softmax& o) const { Softmax(o.axis, x(), out); }
  void operator()(const ops::Conv& o) const { Convolve(o, in, out); }
  void operator()(const ops::AveragePool& o) const { AveragePool(o, x(), out); }
  void operator()(const ops::MaxPool& o) const { MaxPool(o, x(), out); }
  // Constants come from the definition, below.
  void operator()(const ops::Fill&) const {}
  void operator()(const ops::Eye&) const {}
  void operator()(const ops::ConvIdentity&) const {}
  void operator()(const ops::PoolKernel&) const {}
  void operator()(const ops::Opaque&) const {}
};

}  // namespace

StatusOr<Values> Apply(const ops::Operator& op, std::span<const Values* const> operands,
                       const Extents& extents) {
  const ops::Nature nature = ops::InfoOf(op).nature;
  if (nature == ops::Nature::kConstant || nature == ops::Nature::kOpaque) {
    return eval::Apply(op, operands);  // Which refuses an opaque one.
  }
  Values out;
  out.extents = extents;
  out.data.assign(std::size_t(graph::ElementCount(extents)), 0);
  std::visit(Case{op, operands, out}, op);
  return out;
}

}  // namespace tenon::optimizer
