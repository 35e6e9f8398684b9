// Evaluator: the values of the terms of Levels at kLanes samples, each computed once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "worker/kernels.h"
#include "worker/levels.h"
#include "worker/samples.h"

namespace tenon::worker {

// Thread-compatible. `levels` outlives it.
class Evaluator {
 public:
  explicit Evaluator(const Levels& levels);

  // Takes new inputs; the values of all other terms are stale until computed again.
  void SetInputs(std::span<const InputValue> inputs);

  // Computes and keeps the value of a term, whose operands have been. Errors of Plan::Run, with the
  // term.
  Status Keep(TermId id, Signature signature);
  // Of an input or a kept term.
  Value value(TermId id) const { return kept_[static_cast<std::size_t>(id)]; }

  // Computes a value that is not kept; it lives until the next call.
  StatusOr<Value> Compute(Signature signature, std::span<const TermId> operands);

  // Whether the operator can make values that depend on signs. Errors of Plan::For.
  StatusOr<bool> SignFree(Signature signature);

  std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  StatusOr<const Plan*> PlanFor(Signature signature);
  MutableValue Allocate(std::int64_t elements);
  Status Run(Signature signature, std::span<const TermId> operands, MutableValue out);

  const Levels& levels_;
  std::vector<std::unique_ptr<const Plan>> plans_;  // By signature.
  std::vector<MutableValue> kept_;                  // By term.
  struct Block {
    std::unique_ptr<std::uint64_t[]> residue;
    std::unique_ptr<double[]> approx;
  };
  std::vector<Block> blocks_;
  std::size_t block_left_ = 0;
  std::size_t block_size_ = 0;
  std::size_t memory_bytes_ = 0;
  Block scratch_;
  std::size_t scratch_size_ = 0;
};

}  // namespace tenon::worker
