#include "worker/evaluator.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/base/check.h"

namespace tenon::worker {
namespace {
constexpr std::size_t kBlockElements = std::size_t{1} << 16;
}  // namespace

Evaluator::Evaluator(const Levels& levels)
    : levels_(levels),
      scratch_size_(static_cast<std::size_t>(levels.universe().max_elements) * kLanes) {
  scratch_.residue = std::make_unique<std::uint64_t[]>(scratch_size_);
  scratch_.approx = std::make_unique<double[]>(scratch_size_);
}

MutableValue Evaluator::Allocate(std::int64_t elements) {
  const std::size_t count = static_cast<std::size_t>(elements) * kLanes;
  if (count > block_left_) {
    block_size_ = block_left_ = std::max(kBlockElements, count);
    Block block;
    // Not value-initialised: pages are touched when they are used.
    block.residue.reset(new std::uint64_t[block_size_]);
    block.approx.reset(new double[block_size_]);
    blocks_.push_back(std::move(block));
    memory_bytes_ += block_size_ * (sizeof(std::uint64_t) + sizeof(double));
  }
  const std::size_t at = block_size_ - block_left_;
  block_left_ -= count;
  return {blocks_.back().residue.get() + at, blocks_.back().approx.get() + at};
}

void Evaluator::SetInputs(std::span<const InputValue> inputs) {
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (k == kept_.size()) {
      kept_.push_back(Allocate(static_cast<std::int64_t>(inputs[k].residue.size() / kLanes)));
    }
    std::copy(inputs[k].residue.begin(), inputs[k].residue.end(), kept_[k].residue);
    std::copy(inputs[k].approx.begin(), inputs[k].approx.end(), kept_[k].approx);
  }
}

StatusOr<const Plan*> Evaluator::PlanFor(Signature signature) {
  if (signature >= plans_.size()) plans_.resize(signature + 1);
  if (plans_[signature] == nullptr) {
    const graph::TermTable& table = levels_.table();
    std::vector<graph::Extents> extents;
    for (TypeId t : levels_.operand_types(signature)) extents.push_back(table.extents_at(t));
    const auto o = static_cast<std::size_t>(levels_.operator_of(signature));
    ASSIGN_OR_RETURN(Plan plan, Plan::For(levels_.universe().operators[o].op, extents,
                                          table.extents_at(levels_.type_of(signature))));
    plans_[signature] = std::make_unique<const Plan>(std::move(plan));
  }
  return plans_[signature].get();
}

Status Evaluator::Run(Signature signature, std::span<const TermId> operands, MutableValue out) {
  const Plan* plan = signature < plans_.size() ? plans_[signature].get() : nullptr;
  if (plan == nullptr) {
    ASSIGN_OR_RETURN(plan, PlanFor(signature));
  }
  std::array<Value, graph::kUniverseArityMax> values;
  for (std::size_t k = 0; k < operands.size(); ++k) values[k] = value(operands[k]);
  const Status s = plan->Run({values.data(), operands.size()}, out);
  if (s.ok()) return s;
  std::string term;
  for (TermId id : operands) term += (term.empty() ? "" : ", ") + levels_.table().Print(id);
  const auto o = static_cast<std::size_t>(levels_.operator_of(signature));
  return base::Annotate(
      s,
      fmt::format("universe {}: {}({}) cannot be evaluated; leave the operator out",
                  levels_.universe().name, ops::NameOf(levels_.universe().operators[o].op), term));
}

Status Evaluator::Keep(TermId id, Signature signature) {
  const std::size_t k = static_cast<std::size_t>(id);
  if (k >= kept_.size()) kept_.resize(k + 1);
  if (kept_[k].residue == nullptr) {
    kept_[k] = Allocate(graph::ElementCount(levels_.table().extents(id)));
  }
  return Run(signature, levels_.table().operands(id), kept_[k]);
}

StatusOr<Value> Evaluator::Compute(Signature signature, std::span<const TermId> operands) {
  const MutableValue out{scratch_.residue.get(), scratch_.approx.get()};
  RETURN_IF_ERROR(Run(signature, operands, out));
  return Value(out);
}

StatusOr<bool> Evaluator::SignFree(Signature signature) {
  ASSIGN_OR_RETURN(const Plan* plan, PlanFor(signature));
  return plan->sign_free();
}

}  // namespace tenon::worker
