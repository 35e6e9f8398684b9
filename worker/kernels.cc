// Four engines cover what universes use most; everything else runs the definition itself.
//
// *Gather* for operators that only move elements: its table is read off the definition, by applying
// the operator once to elements that carry their own numbers. *Pointwise* with index tables where
// shapes broadcast. *Bilinear* for MatMul and Conv: for each output element the list of pairs to be
// multiplied and summed; products mod 2^61 - 1 are below 2^122, so 32 of them are summed in 128
// bits before a reduction. *Windows* for pools whose divisor is a constant: the list of elements of
// each. All lanes of an element share one pass over the tables.
#include "worker/kernels.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/eval/eval.h"
#include "core/eval/exact.h"

namespace tenon::worker {
namespace {

using eval::Exact;
using eval::kPrime;
using Wide = unsigned __int128;
using std::size_t;
using std::uint32_t;
using std::uint64_t;

constexpr uint32_t kZero = 0xffffffff;
// Hashes that stand for functions; any constant would do.
constexpr uint64_t kFunctionKey = 0x7465'6e6f'6e66'6e73ull;

uint64_t Add(uint64_t a, uint64_t b) {
  const uint64_t s = a + b;
  return s >= kPrime ? s - kPrime : s;
}
uint64_t Sub(uint64_t a, uint64_t b) { return a >= b ? a - b : a + kPrime - b; }
uint64_t Reduce(Wide t) {
  uint64_t s = (uint64_t(t) & kPrime) + (uint64_t(t >> 61) & kPrime) + uint64_t(t >> 122);
  s = (s & kPrime) + (s >> 61);
  return s >= kPrime ? s - kPrime : s;
}
uint64_t Mul(uint64_t a, uint64_t b) { return Reduce(Wide(a) * b); }

// Row-major numbers of the elements of an operand that the elements of `out` read when `own` is
// broadcast to it; empty when that is the identity.
std::vector<uint32_t> BroadcastTable(const graph::Extents& own, const graph::Extents& out) {
  if (own == out) return {};
  std::vector<uint32_t> table;
  graph::Extents at = graph::Extents::Filled(out.size(), 0);
  const auto count = graph::ElementCount(out);
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t index = 0;
    for (int a = 0; a < own.size(); ++a) {
      index = index * own[a] + (own[a] == 1 ? 0 : at[out.size() - own.size() + a]);
    }
    table.push_back(uint32_t(index));
    for (int a = out.size() - 1; a >= 0 && ++at[a] == out[a]; --a) at[a] = 0;
  }
  return table;
}

}  // namespace

StatusOr<Plan> Plan::For(const ops::Operator& op, std::span<const graph::Extents> operands,
                         const graph::Extents& output) {
  if (ops::IsOpaque(op)) return base::InvalidArgument("an opaque operator cannot be evaluated");
  Plan plan;
  plan.elements_ = uint32_t(graph::ElementCount(output));
  plan.operand_extents_.assign(operands.begin(), operands.end());
  plan.output_extents_ = output;
  plan.op_ = op;
  const auto pointwise = [&](Kind kind) {
    plan.kind_ = kind;
    plan.sign_free_ = kind != Kind::kRelu;
    plan.left_ = BroadcastTable(operands[0], output);
    if (operands.size() > 1) plan.right_ = BroadcastTable(operands[1], output);
  };
  if (std::holds_alternative<ops::Add>(op)) {
    pointwise(Kind::kAdd);
  } else if (std::holds_alternative<ops::Sub>(op)) {
    pointwise(Kind::kSub);
  } else if (std::holds_alternative<ops::Mul>(op)) {
    pointwise(Kind::kMul);
  } else if (std::holds_alternative<ops::Neg>(op)) {
    pointwise(Kind::kNeg);
  } else if (std::holds_alternative<ops::Relu>(op)) {
    pointwise(Kind::kRelu);
  } else if (ops::InfoOf(op).nature == ops::Nature::kMovement) {
    RETURN_IF_ERROR(plan.MakeGather(op));
  } else if (!plan.MakeBilinear(op) && !plan.MakeWindows(op)) {
    plan.kind_ = Kind::kGeneric;
  }
  return plan;
}

Status Plan::MakeGather(const ops::Operator& op) {
  kind_ = Kind::kGather;
  sign_free_ = true;
  // Element i of operand k carries the number 1 + i + (the elements before operand k); zeros that
  // the operator makes stay 0.
  std::vector<eval::Tensor<Exact>> tagged;
  std::vector<uint64_t> first;
  uint64_t next = 1;
  for (const graph::Extents& extents : operand_extents_) {
    first.push_back(next);
    eval::Tensor<Exact> t{extents, {}};
    t.data.resize(size_t(graph::ElementCount(extents)));
    for (Exact& e : t.data) e.residue = next++;
    tagged.push_back(std::move(t));
  }
  std::vector<const eval::Tensor<Exact>*> pointers;
  for (const auto& t : tagged) pointers.push_back(&t);
  ASSIGN_OR_RETURN(const eval::Tensor<Exact> out, eval::Apply(op, pointers, kFunctionKey));
  CHECK(out.data.size() == elements_);
  for (const Exact& e : out.data) {
    if (e.residue == 0) {
      operand_.push_back(kZero);
      left_.push_back(0);
      continue;
    }
    const auto after = std::upper_bound(first.begin(), first.end(), e.residue);
    operand_.push_back(uint32_t(after - first.begin() - 1));
    left_.push_back(uint32_t(e.residue - *(after - 1)));
  }
  return OkStatus();
}

namespace {

struct Products {
  std::vector<uint32_t>& left;
  std::vector<uint32_t>& right;
  std::vector<uint32_t>& start;
  void Pair(std::int64_t a, std::int64_t b) const {
    left.push_back(uint32_t(a));
    right.push_back(uint32_t(b));
  }
};

// out[.., i, j] = sum of a[.., i, k] * b[.., k, j].
void MatMulProducts(const graph::Extents& a, const graph::Extents& b, const graph::Extents& out,
                    const Products& to) {
  const std::int64_t m = out[out.size() - 2], n = out[out.size() - 1], inner = a[a.size() - 1];
  const auto batch_of = [](graph::Extents e) {
    e.erase(e.size() - 1);
    e.erase(e.size() - 1);
    return e;
  };
  const graph::Extents batch = batch_of(out);
  const auto table_a = BroadcastTable(batch_of(a), batch);
  const auto table_b = BroadcastTable(batch_of(b), batch);
  const auto batches = graph::ElementCount(batch);
  for (std::int64_t q = 0; q < batches; ++q) {
    const std::int64_t at_a = table_a.empty() ? q : table_a[size_t(q)];
    const std::int64_t at_b = table_b.empty() ? q : table_b[size_t(q)];
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        to.start.push_back(uint32_t(to.left.size()));
        for (std::int64_t k = 0; k < inner; ++k) {
          to.Pair((at_a * m + i) * inner + k, (at_b * inner + k) * n + j);
        }
      }
    }
  }
  to.start.push_back(uint32_t(to.left.size()));
}

// The elements of kernel and image that make output element (n, f, i, j).
void ConvProductsAt(const ops::Conv& conv, const graph::Extents& x, const graph::Extents& w,
                    const graph::Extents& at, const Products& to) {
  const std::int64_t group = at[1] / (w[0] / conv.group.constant());
  for (std::int64_t c = 0; c < w[1]; ++c) {
    for (std::int64_t r = 0; r < w[2]; ++r) {
      for (std::int64_t s = 0; s < w[3]; ++s) {
        const std::int64_t h = at[2] * conv.strides[0].constant() +
                               r * conv.dilations[0].constant() - conv.pads[0].constant();
        const std::int64_t v = at[3] * conv.strides[1].constant() +
                               s * conv.dilations[1].constant() - conv.pads[1].constant();
        if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
        to.Pair(((at[0] * x[1] + group * w[1] + c) * x[2] + h) * x[3] + v,
                ((at[1] * w[1] + c) * w[2] + r) * w[3] + s);
      }
    }
  }
}

}  // namespace

bool Plan::MakeBilinear(const ops::Operator& op) {
  const Products to{left_, right_, start_};
  if (std::holds_alternative<ops::MatMul>(op)) {
    kind_ = Kind::kBilinear;
    sign_free_ = true;
    MatMulProducts(operand_extents_[0], operand_extents_[1], output_extents_, to);
    return true;
  }
  const auto* conv = std::get_if<ops::Conv>(&op);
  if (conv == nullptr ||
      (conv->activation != ops::Activation::kNone && conv->activation != ops::Activation::kRelu)) {
    return false;
  }
  kind_ = Kind::kBilinear;
  relu_ = conv->activation == ops::Activation::kRelu;
  sign_free_ = !relu_;
  const int operands = int(operand_extents_.size());
  if (conv->HasBias(operands)) bias_operand_ = 2;
  if (conv->residual == 1) residual_operand_ = operands - 1;
  graph::Extents at = graph::Extents::Filled(4, 0);
  for (uint32_t e = 0; e < elements_; ++e) {
    start_.push_back(uint32_t(left_.size()));
    ConvProductsAt(*conv, operand_extents_[0], operand_extents_[1], at, to);
    if (bias_operand_ >= 0) bias_.push_back(uint32_t(at[1]));
    for (int a = 3; a >= 0 && ++at[a] == output_extents_[a]; --a) at[a] = 0;
  }
  start_.push_back(uint32_t(left_.size()));
  return true;
}

bool Plan::MakeWindows(const ops::Operator& op) {
  const auto each_window = [&](const auto& pool) {
    const graph::Extents& image = operand_extents_[0];
    const auto position = [&](std::size_t axis, std::int64_t at, std::int64_t k) {
      return at * pool.strides[int(axis)].constant() + k - pool.pads[int(axis)].constant();
    };
    graph::Extents at = graph::Extents::Filled(4, 0);
    for (uint32_t e = 0; e < elements_; ++e) {
      start_.push_back(uint32_t(left_.size()));
      for (std::int64_t r = 0; r < pool.kernel_shape[0].constant(); ++r) {
        for (std::int64_t c = 0; c < pool.kernel_shape[1].constant(); ++c) {
          const std::int64_t h = position(0, at[2], r), w = position(1, at[3], c);
          if (h < 0 || h >= image[2] || w < 0 || w >= image[3]) continue;
          left_.push_back(uint32_t(((at[0] * image[1] + at[1]) * image[2] + h) * image[3] + w));
        }
      }
      for (int a = 3; a >= 0 && ++at[a] == output_extents_[a]; --a) at[a] = 0;
    }
    start_.push_back(uint32_t(left_.size()));
  };
  if (const auto* average = std::get_if<ops::AveragePool>(&op)) {
    const bool padded = std::any_of(average->pads.begin(), average->pads.end(),
                                    [](const ops::Size& p) { return !p.is_constant(0); });
    if (padded && average->count_include_pad != 1) return false;
    kind_ = Kind::kAverage;
    sign_free_ = true;
    scale_ = eval::FromFraction(
        1, average->kernel_shape[0].constant() * average->kernel_shape[1].constant());
    each_window(*average);
    return true;
  }
  const auto* maximum = std::get_if<ops::MaxPool>(&op);
  if (maximum == nullptr) return false;
  kind_ = Kind::kMaximum;
  each_window(*maximum);
  return true;
}

Status Plan::Run(std::span<const Value> operands, MutableValue out) const {
  switch (kind_) {
    case Kind::kGather:
      RunGather(operands, out);
      return OkStatus();
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul:
      RunBinary(operands[0], operands[1], out);
      return OkStatus();
    case Kind::kNeg:
      for (size_t k = 0; k < size_t(elements_) * kLanes; ++k) {
        out.residue[k] = Sub(0, operands[0].residue[k]);
        out.approx[k] = -operands[0].approx[k];
      }
      return OkStatus();
    case Kind::kRelu:
      for (size_t k = 0; k < size_t(elements_) * kLanes; ++k) {
        // A residue of 0 is the number 0, whatever the rounded double says.
        const bool positive = operands[0].residue[k] != 0 && operands[0].approx[k] > 0;
        out.residue[k] = positive ? operands[0].residue[k] : 0;
        out.approx[k] = positive ? operands[0].approx[k] : 0;
      }
      return OkStatus();
    case Kind::kBilinear:
      RunBilinear(operands, out);
      return OkStatus();
    case Kind::kAverage:
      RunAverage(operands[0], out);
      return OkStatus();
    case Kind::kMaximum:
      RunMaximum(operands[0], out);
      return OkStatus();
    case Kind::kGeneric:
      return RunGeneric(operands, out);
  }
  return OkStatus();
}

void Plan::RunAverage(Value image, MutableValue out) const {
  for (size_t e = 0; e < elements_; ++e) {
    for (size_t l = 0; l < kLanes; ++l) {
      uint64_t sum = 0;
      double approx = 0;
      for (size_t t = start_[e]; t < start_[e + 1]; ++t) {
        sum = Add(sum, image.residue[left_[t] * kLanes + l]);
        approx += image.approx[left_[t] * kLanes + l];
      }
      out.residue[e * kLanes + l] = Mul(sum, scale_.residue);
      out.approx[e * kLanes + l] = approx * scale_.approx;
    }
  }
}

// The first of equal ones, as the definition has it; every window has an element of the image.
void Plan::RunMaximum(Value image, MutableValue out) const {
  for (size_t e = 0; e < elements_; ++e) {
    for (size_t l = 0; l < kLanes; ++l) {
      size_t best = left_[start_[e]] * kLanes + l;
      for (size_t t = start_[e] + 1; t < start_[e + 1]; ++t) {
        const size_t at = left_[t] * kLanes + l;
        if (image.approx[at] > image.approx[best]) best = at;
      }
      out.residue[e * kLanes + l] = image.residue[best];
      out.approx[e * kLanes + l] = image.approx[best];
    }
  }
}

void Plan::RunGather(std::span<const Value> operands, MutableValue out) const {
  for (size_t e = 0; e < elements_; ++e) {
    uint64_t* r = out.residue + e * kLanes;
    double* d = out.approx + e * kLanes;
    if (operand_[e] == kZero) {
      std::fill_n(r, kLanes, 0);
      std::fill_n(d, kLanes, 0.0);
      continue;
    }
    const Value& from = operands[operand_[e]];
    std::memcpy(r, from.residue + size_t(left_[e]) * kLanes, kLanes * sizeof *r);
    std::memcpy(d, from.approx + size_t(left_[e]) * kLanes, kLanes * sizeof *d);
  }
}

void Plan::RunBinary(Value a, Value b, MutableValue out) const {
  const auto each = [&](auto residue, auto approx) {
    for (size_t e = 0; e < elements_; ++e) {
      const size_t i = (left_.empty() ? e : left_[e]) * kLanes;
      const size_t j = (right_.empty() ? e : right_[e]) * kLanes;
      for (size_t l = 0; l < kLanes; ++l) {
        out.residue[e * kLanes + l] = residue(a.residue[i + l], b.residue[j + l]);
        out.approx[e * kLanes + l] = approx(a.approx[i + l], b.approx[j + l]);
      }
    }
  };
  if (kind_ == Kind::kAdd) {
    each(Add, [](double x, double y) { return x + y; });
  } else if (kind_ == Kind::kSub) {
    each(Sub, [](double x, double y) { return x - y; });
  } else {
    each(Mul, [](double x, double y) { return x * y; });
  }
}

void Plan::RunBilinear(std::span<const Value> operands, MutableValue out) const {
  constexpr uint32_t kUnreduced = 32;
  const Value a = operands[0], b = operands[1];
  for (size_t e = 0; e < elements_; ++e) {
    Wide sum[kLanes] = {};
    double approx[kLanes] = {};
    uint32_t t = start_[e];
    const uint32_t end = start_[e + 1];
    while (t < end) {
      const uint32_t stop = std::min(end, t + kUnreduced - 1);
      for (; t < stop; ++t) {
        const uint64_t* x = a.residue + size_t(left_[t]) * kLanes;
        const uint64_t* y = b.residue + size_t(right_[t]) * kLanes;
        const double* u = a.approx + size_t(left_[t]) * kLanes;
        const double* v = b.approx + size_t(right_[t]) * kLanes;
        for (size_t l = 0; l < kLanes; ++l) {
          sum[l] += Wide(x[l]) * y[l];
          approx[l] += u[l] * v[l];
        }
      }
      for (size_t l = 0; l < kLanes; ++l) sum[l] = Reduce(sum[l]);
    }
    for (size_t l = 0; l < kLanes; ++l) {
      uint64_t r = uint64_t(sum[l]);
      double d = approx[l];
      const auto add = [&](const Value& v, size_t at) {
        r = Add(r, v.residue[at * kLanes + l]);
        d += v.approx[at * kLanes + l];
      };
      if (bias_operand_ >= 0) add(operands[size_t(bias_operand_)], bias_[e]);
      if (residual_operand_ >= 0) add(operands[size_t(residual_operand_)], e);
      const bool keep = !relu_ || (r != 0 && d > 0);
      out.residue[e * kLanes + l] = keep ? r : 0;
      out.approx[e * kLanes + l] = keep ? d : 0;
    }
  }
}

Status Plan::RunGeneric(std::span<const Value> operands, MutableValue out) const {
  for (size_t l = 0; l < kLanes; ++l) {
    std::vector<eval::Tensor<Exact>> tensors;
    for (size_t k = 0; k < operands.size(); ++k) {
      eval::Tensor<Exact> t{operand_extents_[k], {}};
      t.data.resize(size_t(graph::ElementCount(operand_extents_[k])));
      for (size_t e = 0; e < t.data.size(); ++e) {
        t.data[e] = {operands[k].residue[e * kLanes + l], operands[k].approx[e * kLanes + l]};
      }
      tensors.push_back(std::move(t));
    }
    std::vector<const eval::Tensor<Exact>*> pointers;
    for (const auto& t : tensors) pointers.push_back(&t);
    ASSIGN_OR_RETURN(const eval::Tensor<Exact> result, eval::Apply(op_, pointers, kFunctionKey));
    CHECK(result.data.size() == elements_);
    for (size_t e = 0; e < elements_; ++e) {
      out.residue[e * kLanes + l] = result.data[e].residue;
      out.approx[e * kLanes + l] = result.data[e].approx;
    }
  }
  return OkStatus();
}

}  // namespace tenon::worker
