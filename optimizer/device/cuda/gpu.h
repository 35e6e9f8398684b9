// Inside of the CUDA module: what its files share. C++17, as nvcc compiles it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#ifdef TENON_HAVE_CUDNN
#include <cudnn.h>
#endif

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimizer/device/cuda/abi.h"

struct TenonCuda {
  cudaStream_t stream = nullptr;
  cublasLtHandle_t blas = nullptr;
#ifdef TENON_HAVE_CUDNN
  cudnnHandle_t dnn = nullptr;
#endif
  void* workspace = nullptr;  // Shared by all kernels: one runs at a time.
  void* flush = nullptr;      // Larger than the L2 cache.
  size_t flush_bytes = 0;
  cudaEvent_t start = nullptr, end = nullptr;
  std::string identity;
};

namespace tenon::optimizer::cuda {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;

// Queues a step on the stream; false: it failed. Pointers are of the device.
using Launch = std::function<bool(const std::vector<float*>& operands, float* output)>;

// Each: nothing (an empty function) if there is no kernel for the step.
Launch MakeMap(TenonCuda& cuda, const TenonMap& map);                          // kernels.cu
Launch MakeRows(TenonCuda& cuda, const TenonRows& rows);                       // kernels.cu
Launch MakePool(TenonCuda& cuda, const TenonPool& pool);                       // kernels.cu
Launch MakeProduct(TenonCuda& cuda, const TenonProduct& product);              // product.cc
Launch MakeConvolution(TenonCuda& cuda, const TenonConvolution& convolution);  // convolution.cc

// The fastest of several ways to do one thing, by events on scratch tensors of these sizes; the
// first one if they cannot be timed, and nothing if there is none.
Launch Fastest(TenonCuda& cuda, const std::vector<Launch>& ways,
               const std::vector<size_t>& operand_elements, size_t output_elements);

}  // namespace tenon::optimizer::cuda
