#include "optimizer/device/cuda/plan.h"

#include <algorithm>

namespace tenon::optimizer::cuda {
namespace {

using graph::Extents;

// Row-major.
Extents StridesOf(const Extents& extents) {
  Extents strides = Extents::Filled(extents.size(), 1);
  for (int a = extents.size() - 2; a >= 0; --a) strides[a] = strides[a + 1] * extents[a + 1];
  return strides;
}

std::int64_t Product(const Extents& extents, int first, int end) {
  std::int64_t product = 1;
  for (int a = first; a < end; ++a) product *= extents[a];
  return product;
}

template <class To>
void Put(const Extents& from, To& to) {
  for (int a = 0; a < from.size(); ++a) to[a] = from[a];
}

TenonStep StepOf(TenonStepKind kind) {
  TenonStep step{};
  step.kind = kind;
  return step;
}

// A map over all of the output, in its order.
TenonMap MapOf(TenonFunction function, const Extents& output) {
  TenonMap map{};
  map.function = function;
  map.rank = output.size();
  Put(output, map.extents);
  Put(StridesOf(output), map.to_strides);
  return map;
}

void Read(TenonMap& map, int operand, std::int64_t offset, const Extents& strides) {
  const auto at = map.operands++;
  map.operand[at] = operand;
  map.offset[at] = offset;
  Put(strides, map.strides[at]);
}

// An operand that is broadcast to `rank` axes.
Extents Broadcast(const Extents& own, int rank) {
  const Extents strides = StridesOf(own);
  Extents out = Extents::Filled(rank, 0);
  for (int a = 0; a < own.size(); ++a) {
    if (own[a] != 1) out[rank - own.size() + a] = strides[a];
  }
  return out;
}

TenonStep Step(const TenonMap& map) {
  TenonStep step = StepOf(kTenonStepMap);
  step.map = map;
  return step;
}

struct Function {
  TenonFunction what;
  double alpha = 0;
};

std::optional<Function> FunctionOf(const ops::Operator& op) {
  if (std::holds_alternative<ops::Neg>(op)) return Function{kTenonNeg};
  if (std::holds_alternative<ops::Relu>(op)) return Function{kTenonRelu};
  if (std::holds_alternative<ops::Sigmoid>(op)) return Function{kTenonSigmoid};
  if (std::holds_alternative<ops::Tanh>(op)) return Function{kTenonTanh};
  if (std::holds_alternative<ops::Exp>(op)) return Function{kTenonExp};
  if (std::holds_alternative<ops::Reciprocal>(op)) return Function{kTenonReciprocal};
  if (std::holds_alternative<ops::Sqrt>(op)) return Function{kTenonSqrt};
  if (std::holds_alternative<ops::Erf>(op)) return Function{kTenonErf};
  if (std::holds_alternative<ops::Silu>(op)) return Function{kTenonSilu};
  if (std::holds_alternative<ops::Add>(op)) return Function{kTenonAdd};
  if (std::holds_alternative<ops::Sub>(op)) return Function{kTenonSub};
  if (std::holds_alternative<ops::Mul>(op)) return Function{kTenonMul};
  if (std::holds_alternative<ops::Div>(op)) return Function{kTenonDiv};
  if (std::holds_alternative<ops::Max>(op)) return Function{kTenonMax};
  if (std::holds_alternative<ops::Min>(op)) return Function{kTenonMin};
  if (std::holds_alternative<ops::Clip>(op)) return Function{kTenonClip};
  if (const auto* leaky = std::get_if<ops::LeakyRelu>(&op)) {
    return Function{kTenonLeakyRelu, leaky->alpha};
  }
  if (const auto* gelu = std::get_if<ops::Gelu>(&op)) {
    return Function{gelu->approximate == 1 ? kTenonGeluTanh : kTenonGelu};
  }
  return std::nullopt;
}

// Each element from one of each operand.
bool PlanPointwise(const Operation& operation, Plan& plan) {
  const int rank = operation.output.size();
  if (const auto* batch = std::get_if<ops::BatchNormalization>(&operation.op)) {
    TenonMap map = MapOf(kTenonBatchNormalize, operation.output);
    map.alpha = batch->epsilon;
    Read(map, 0, 0, StridesOf(operation.output));
    Extents channel = Extents::Filled(rank, 0);
    channel[1] = 1;
    for (int k = 1; k < 5; ++k) Read(map, k, 0, channel);
    plan.steps.push_back(Step(map));
    return true;
  }
  const std::optional<Function> function = FunctionOf(operation.op);
  if (!function) return false;
  TenonMap map = MapOf(function->what, operation.output);
  map.alpha = function->alpha;
  for (int k = 0; k < int(operation.operands.size()); ++k) {
    Read(map, k, 0, Broadcast(operation.operands[std::size_t(k)].extents, rank));
  }
  plan.steps.push_back(Step(map));
  return true;
}

// A part of the operand: positions start, start + step, .. of an axis.
void PlanPart(const Operation& operation, std::int64_t axis, std::int64_t start, std::int64_t step,
              Plan& plan) {
  Extents strides = StridesOf(operation.operands[0].extents);
  const std::int64_t offset = start * strides[int(axis)];
  strides[int(axis)] *= step;
  TenonMap map = MapOf(kTenonCopy, operation.output);
  Read(map, 0, offset, strides);
  plan.steps.push_back(Step(map));
}

// Operand k as a block of the output.
void PlanBlock(const Operation& operation, int k, const Extents& place, Plan& plan) {
  const Extents& own = operation.operands[std::size_t(k)].extents;
  const Extents strides = StridesOf(operation.output);
  TenonMap map = MapOf(kTenonCopy, own);
  Put(strides, map.to_strides);
  for (int a = 0; a < place.size(); ++a) map.to_offset += place[a] * strides[a];
  Read(map, k, 0, StridesOf(own));
  plan.steps.push_back(Step(map));
}

bool PlanMovement(const Operation& operation, Plan& plan) {
  if (operation.operands.empty()) return false;
  const Extents &x = operation.operands[0].extents, &y = operation.output;
  Extents place = Extents::Filled(y.size(), 0);
  if (const auto* transpose = std::get_if<ops::Transpose>(&operation.op)) {
    const Extents own = StridesOf(x);
    Extents strides;
    for (const std::int64_t axis : transpose->perm) strides.push_back(own[int(axis)]);
    TenonMap map = MapOf(kTenonCopy, y);
    Read(map, 0, 0, strides);
    plan.steps.push_back(Step(map));
  } else if (const auto* split = std::get_if<ops::Split>(&operation.op)) {
    PlanPart(operation, split->axis, split->index * y[int(split->axis)], 1, plan);
  } else if (const auto* slice = std::get_if<ops::Slice>(&operation.op)) {
    PlanPart(operation, slice->axis, slice->start.constant(), slice->step, plan);
  } else if (const auto* concat = std::get_if<ops::Concat>(&operation.op)) {
    for (int k = 0; k < int(operation.operands.size()); ++k) {
      PlanBlock(operation, k, place, plan);
      place[int(concat->axis)] += operation.operands[std::size_t(k)].extents[int(concat->axis)];
    }
  } else if (const auto* pad = std::get_if<ops::Pad>(&operation.op)) {
    for (int a = 0; a < y.size(); ++a) place[a] = pad->begins[a].constant();
    plan.steps.push_back(StepOf(kTenonStepClear));
    PlanBlock(operation, 0, place, plan);
  } else if (std::holds_alternative<ops::Enlarge>(operation.op)) {
    for (int a = 2; a < 4; ++a) place[a] = (y[a] - x[a]) / 2;
    plan.steps.push_back(StepOf(kTenonStepClear));
    PlanBlock(operation, 0, place, plan);
  } else {
    return false;
  }
  return true;
}

// Whether operand k is one row of x, from `axis` on, without broadcasting inside of it.
bool IsRow(const Operation& operation, int k, std::int64_t axis) {
  const Extents &own = operation.operands[std::size_t(k)].extents, &x = operation.output;
  for (int a = 0; a < own.size(); ++a) {
    if (own[a] != 1 && own[a] != x[x.size() - own.size() + a]) return false;
  }
  return graph::ElementCount(own) == Product(x, int(axis), x.size());
}

TenonRows RowsOf(TenonFold fold, const Extents& x, int first, int end) {
  TenonRows rows{};
  rows.fold = fold;
  rows.outer = Product(x, 0, first);
  rows.width = Product(x, first, end);
  rows.inner = Product(x, end, x.size());
  return rows;
}

template <class Normalization>
std::optional<TenonRows> NormalizedRows(const Operation& operation, const Normalization& op,
                                        TenonFold fold) {
  const Extents& x = operation.output;
  for (int k = 1; k < int(operation.operands.size()); ++k) {
    if (!IsRow(operation, k, op.axis)) return std::nullopt;
  }
  TenonRows rows = RowsOf(fold, x, int(op.axis), x.size());
  rows.bias = operation.operands.size() == 3 ? 1 : 0;
  rows.epsilon = op.epsilon;
  return rows;
}

std::optional<TenonRows> RowsOf(const Operation& operation) {
  const ops::Operator& op = operation.op;
  if (operation.operands.empty()) return std::nullopt;
  const Extents& x = operation.operands[0].extents;
  const auto along = [&](TenonFold fold, std::int64_t axis) {
    return RowsOf(fold, x, int(axis), int(axis) + 1);
  };
  if (const auto* sum = std::get_if<ops::ReduceSum>(&op)) return along(kTenonSum, sum->axis);
  if (const auto* mean = std::get_if<ops::ReduceMean>(&op)) return along(kTenonMean, mean->axis);
  if (const auto* max = std::get_if<ops::ReduceMax>(&op)) return along(kTenonMaximum, max->axis);
  if (const auto* softmax = std::get_if<ops::Softmax>(&op)) {
    return along(kTenonSoftmax, softmax->axis);
  }
  if (std::holds_alternative<ops::GlobalAveragePool>(op)) {
    return RowsOf(kTenonMean, x, 2, x.size());
  }
  if (const auto* layer = std::get_if<ops::LayerNormalization>(&op)) {
    return NormalizedRows(operation, *layer, kTenonLayer);
  }
  if (const auto* rms = std::get_if<ops::RMSNormalization>(&op)) {
    return NormalizedRows(operation, *rms, kTenonRms);
  }
  return std::nullopt;
}

template <class Op>
TenonStep PoolStep(const Operation& operation, const Op& op, TenonPoolKind kind) {
  const Extents &x = operation.operands[0].extents, &y = operation.output;
  TenonStep step = StepOf(kTenonStepPool);
  step.pool.kind = kind;
  step.pool.images = x[0] * x[1];
  for (int a = 0; a < 2; ++a) {
    step.pool.in[a] = x[2 + a];
    step.pool.out[a] = y[2 + a];
    step.pool.kernel[a] = op.kernel_shape[a].constant();
    step.pool.strides[a] = op.strides[a].constant();
    step.pool.pads[a] = op.pads[a].constant();
  }
  return step;
}

bool PlanWindow(const Operation& operation, Plan& plan) {
  if (const auto* max = std::get_if<ops::MaxPool>(&operation.op)) {
    plan.steps.push_back(PoolStep(operation, *max, kTenonPoolMax));
  } else if (const auto* average = std::get_if<ops::AveragePool>(&operation.op)) {
    plan.steps.push_back(
        PoolStep(operation, *average,
                 average->count_include_pad == 1 ? kTenonPoolIncluding : kTenonPoolExcluding));
  } else {
    return false;
  }
  return true;
}

// The distance of the matrices of one operand, if there is one for the whole batch.
std::optional<std::int64_t> BatchStride(const Extents& own, std::int64_t batch) {
  const std::int64_t matrices = Product(own, 0, own.size() - 2);
  const std::int64_t size = own[own.size() - 2] * own[own.size() - 1];
  if (matrices == batch) return size;
  if (matrices == 1) return 0;
  return std::nullopt;
}

bool PlanProduct(const Operation& operation, Plan& plan) {
  if (!std::holds_alternative<ops::MatMul>(operation.op)) return false;
  const Extents &a = operation.operands[0].extents, &b = operation.operands[1].extents;
  const Extents& c = operation.output;
  TenonStep step = StepOf(kTenonStepProduct);
  TenonProduct& p = step.product;
  p = {Product(c, 0, c.size() - 2), a[a.size() - 2], b[b.size() - 1], a[a.size() - 1], 0, 0};
  if (b.size() == 2) {  // One large product instead of many small ones.
    p.m *= p.batch;
    p.batch = 1;
  }
  const auto stride_a = p.batch == 1 ? 0 : BatchStride(a, p.batch);
  const auto stride_b = p.batch == 1 ? 0 : BatchStride(b, p.batch);
  if (!stride_a || !stride_b) return false;
  p.stride_a = *stride_a;
  p.stride_b = *stride_b;
  plan.steps.push_back(step);
  return true;
}

bool PlanConvolution(const Operation& operation, Plan& plan) {
  const auto* conv = std::get_if<ops::Conv>(&operation.op);
  if (conv == nullptr) return false;
  const Extents &x = operation.operands[0].extents, &w = operation.operands[1].extents;
  TenonStep step = StepOf(kTenonStepConvolution);
  TenonConvolution& c = step.convolution;
  c.n = x[0];
  c.c = x[1];
  c.f = w[0];
  c.group = conv->group.constant();
  for (int a = 0; a < 2; ++a) {
    c.in[a] = x[2 + a];
    c.out[a] = operation.output[2 + a];
    c.kernel[a] = w[2 + a];
    c.strides[a] = conv->strides[a].constant();
    c.dilations[a] = conv->dilations[a].constant();
    c.before[a] = conv->pads[a].constant();
    c.after[a] = conv->pads[2 + a].constant();
  }
  c.bias = conv->HasBias(int(operation.operands.size())) ? 1 : 0;
  c.residual = int(conv->residual);
  c.activation = int(conv->activation);  // The numbers are the same.
  plan.steps.push_back(step);
  return true;
}

static_assert(int(ops::Activation::kRelu) == kTenonActRelu &&
              int(ops::Activation::kSigmoid) == kTenonActSigmoid &&
              int(ops::Activation::kTanh) == kTenonActTanh);
static_assert(base::kRankMax == kTenonRank && ops::kArityMax == 64);

}  // namespace

std::optional<Plan> PlanOf(const Operation& operation) {
  Plan plan;
  plan.tensors.operands = std::int32_t(operation.operands.size());
  for (std::size_t k = 0; k < operation.operands.size(); ++k) {
    plan.tensors.operand_elements[k] = graph::ElementCount(operation.operands[k].extents);
    plan.tensors.same_as[k] = operation.operands[k].same_as;
  }
  plan.tensors.output_elements = graph::ElementCount(operation.output);
  if (const std::optional<TenonRows> rows = RowsOf(operation)) {
    plan.steps.push_back(StepOf(kTenonStepRows));
    plan.steps.back().rows = *rows;
    return plan;
  }
  if (PlanPointwise(operation, plan) || PlanMovement(operation, plan) ||
      PlanWindow(operation, plan) || PlanProduct(operation, plan) ||
      PlanConvolution(operation, plan)) {
    return plan;
  }
  return std::nullopt;
}

}  // namespace tenon::optimizer::cuda
