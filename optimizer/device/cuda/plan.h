// Plans: operations in the few kinds of steps that GPU modules run (abi.h).
#pragma once

#include <optional>
#include <vector>

#include "optimizer/device/cuda/abi.h"
#include "optimizer/device/operation.h"

namespace tenon::optimizer::cuda {

struct Plan {
  std::vector<TenonStep> steps;
  TenonTensors tensors{};
};

// Nothing for an operator without a plan: constants, what is free, batches that repeat matrices in
// a pattern of more than one stride, normalizations whose parameters broadcast.
std::optional<Plan> PlanOf(const Operation& operation);

}  // namespace tenon::optimizer::cuda
