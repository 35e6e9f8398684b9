// Values of tensors under the definitions of types.h, and their fingerprints.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/universe.h"
#include "worker/released/kernels.h"
#include "worker/released/types.h"

namespace tenon::worker::released {

struct Tensor {
  TypeId type = kNoType;
  const std::uint32_t* data = nullptr;  // As the type stores it; someone else's.
};

// Thread-compatible; `types` outlives it.
class Evaluator {
 public:
  Evaluator(const Types& types, std::int64_t elements_max, std::uint64_t seed);

  // Applies a step to its operands (none, one or two). result(k) lives until the next call.
  void Run(const Step& step, std::span<const Tensor> operands);
  // After Run of a Conv without Relu: makes it that of the same with Relu.
  void ApplyRelu(TypeId type);
  const std::uint32_t* result(std::size_t slot) const { return results_[slot].data(); }

  // Of type and data; never 0.
  std::uint64_t Fingerprint(TypeId type, const std::uint32_t* data) const;

  // The values of an input that comes after `before` elements of others: 31 bits and both signs.
  // They are counted with, since a scalar is a single number of 32 bits: a few chains of operators
  // on it are equal by accident of its value, which at size 4 makes a difference of some of 400
  // million graphs. Published counts are those of seed 0.
  static std::vector<std::uint32_t> InputValues(std::uint64_t seed, std::size_t before,
                                                std::size_t elements);

 private:
  void RunMatMul(const Step& step, const Tensor& a, const Tensor& b);
  void RunConcat(const Instance& instance, const Step& step, const Tensor& a, const Tensor& b);
  void RunSplit(const Instance& instance, const Step& step, const Tensor& a);
  void RunShuffle(const Step& step, const Tensor& a);
  void RunEnlarge(const Step& step, const Tensor& a);

  const Types& types_;
  const Kernels& kernels_;
  std::array<std::vector<std::uint32_t>, 2> results_;
  std::vector<std::uint32_t> first_keys_, second_keys_;
};

}  // namespace tenon::worker::released
