// The module's functions (abi.h): the device, tensors in its memory, and time by events.
#include <cstdio>
#include <cstring>

#include "optimizer/device/cuda/gpu.h"

struct TenonCudaKernel {
  TenonCuda* cuda = nullptr;
  std::vector<float*> operands;
  std::vector<size_t> elements;
  std::vector<float*> owned;  // What is freed.
  float* output = nullptr;
  size_t output_elements = 0;
  std::vector<tenon::optimizer::cuda::Launch> steps;

  bool Run() const {
    for (const auto& step : steps) {
      if (!step(operands, output)) return false;
    }
    return true;
  }
};

namespace tenon::optimizer::cuda {
namespace {

bool Well(cudaError_t error) { return error == cudaSuccess; }

float* Allocate(size_t elements) {
  void* memory = nullptr;
  return Well(cudaMalloc(&memory, elements * sizeof(float))) ? static_cast<float*>(memory)
                                                             : nullptr;
}

// The time that the stream takes for what `queue` puts on it; below 0: it failed.
template <class Queue>
double Microseconds(TenonCuda& cuda, const Queue& queue) {
  float ms = 0;
  const bool well = Well(cudaEventRecord(cuda.start, cuda.stream)) && queue() &&
                    Well(cudaEventRecord(cuda.end, cuda.stream)) &&
                    Well(cudaEventSynchronize(cuda.end)) &&
                    Well(cudaEventElapsedTime(&ms, cuda.start, cuda.end));
  return well ? double(ms) * 1e3 : -1;
}

std::string Identify(const cudaDeviceProp& device) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
#ifdef TENON_HAVE_CUDNN
  const std::string dnn = std::to_string(cudnnGetVersion());
#else
  const std::string dnn = "none";
#endif
  return "cuBLASLt " + std::to_string(cublasLtGetVersion()) + " cuDNN " + dnn + " runtime " +
         std::to_string(runtime) + " driver " + std::to_string(driver) + " float32 " + device.name;
}

bool Start(TenonCuda& cuda, const cudaDeviceProp& device) {
  cuda.flush_bytes = size_t(device.l2CacheSize) * 3 / 2;
  bool well = Well(cudaStreamCreateWithFlags(&cuda.stream, cudaStreamNonBlocking)) &&
              Well(cudaEventCreate(&cuda.start)) && Well(cudaEventCreate(&cuda.end)) &&
              Well(cudaMalloc(&cuda.workspace, kWorkspaceBytes)) &&
              Well(cudaMalloc(&cuda.flush, cuda.flush_bytes)) &&
              cublasLtCreate(&cuda.blas) == CUBLAS_STATUS_SUCCESS;
#ifdef TENON_HAVE_CUDNN
  well = well && cudnnCreate(&cuda.dnn) == CUDNN_STATUS_SUCCESS &&
         cudnnSetStream(cuda.dnn, cuda.stream) == CUDNN_STATUS_SUCCESS;
#endif
  return well;
}

void Close(TenonCuda* cuda) {
#ifdef TENON_HAVE_CUDNN
  if (cuda->dnn != nullptr) cudnnDestroy(cuda->dnn);
#endif
  if (cuda->blas != nullptr) cublasLtDestroy(cuda->blas);
  cudaFree(cuda->workspace);
  cudaFree(cuda->flush);
  if (cuda->start != nullptr) cudaEventDestroy(cuda->start);
  if (cuda->end != nullptr) cudaEventDestroy(cuda->end);
  if (cuda->stream != nullptr) cudaStreamDestroy(cuda->stream);
  delete cuda;
}

int Open(TenonCuda** out, char* error, int32_t error_size) {
  int count = 0;
  cudaDeviceProp device{};
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&device, 0);
  if (status != cudaSuccess) {
    std::snprintf(error, size_t(error_size), "no GPU can be used: %s", cudaGetErrorString(status));
    return 1;
  }
  auto* cuda = new TenonCuda();
  if (!Start(*cuda, device)) {
    std::snprintf(error, size_t(error_size), "CUDA's libraries do not start: %s",
                  cudaGetErrorString(cudaGetLastError()));
    Close(cuda);
    return 1;
  }
  cuda->identity = Identify(device);
  *out = cuda;
  return 0;
}

const char* Identity(const TenonCuda* cuda) { return cuda->identity.c_str(); }

Launch MakeClear(TenonCuda& cuda, size_t elements) {
  return [&cuda, elements](const std::vector<float*>&, float* output) {
    return Well(cudaMemsetAsync(output, 0, elements * sizeof(float), cuda.stream));
  };
}

Launch MakeStep(TenonCuda& cuda, const TenonStep& step, size_t output_elements) {
  switch (TenonStepKind(step.kind)) {
    case kTenonStepClear:
      return MakeClear(cuda, output_elements);
    case kTenonStepMap:
      return MakeMap(cuda, step.map);
    case kTenonStepRows:
      return MakeRows(cuda, step.rows);
    case kTenonStepPool:
      return MakePool(cuda, step.pool);
    case kTenonStepProduct:
      return MakeProduct(cuda, step.product);
    case kTenonStepConvolution:
      return MakeConvolution(cuda, step.convolution);
  }
  return {};
}

void Discard(TenonCudaKernel* kernel) {
  for (float* memory : kernel->owned) cudaFree(memory);
  delete kernel;
}

bool AllocateTensors(TenonCudaKernel& kernel, const TenonTensors& tensors) {
  for (int32_t k = 0; k < tensors.operands; ++k) {
    kernel.elements.push_back(size_t(tensors.operand_elements[k]));
    if (tensors.same_as[k] >= 0) {
      kernel.operands.push_back(kernel.operands[size_t(tensors.same_as[k])]);
      continue;
    }
    kernel.owned.push_back(Allocate(kernel.elements.back()));
    kernel.operands.push_back(kernel.owned.back());
    if (kernel.operands.back() == nullptr) return false;
  }
  kernel.output_elements = size_t(tensors.output_elements);
  kernel.output = Allocate(kernel.output_elements);
  kernel.owned.push_back(kernel.output);
  return kernel.output != nullptr;
}

int Prepare(TenonCuda* cuda, const TenonStep* steps, int32_t count, const TenonTensors* tensors,
            TenonCudaKernel** out) {
  auto* kernel = new TenonCudaKernel();
  kernel->cuda = cuda;
  bool well = AllocateTensors(*kernel, *tensors);
  for (int32_t k = 0; k < count && well; ++k) {
    kernel->steps.push_back(MakeStep(*cuda, steps[k], kernel->output_elements));
    well = bool(kernel->steps.back());
  }
  if (!well) {
    cudaGetLastError();  // Forgotten: the next operation may fit.
    Discard(kernel);
    return 1;
  }
  *out = kernel;
  return 0;
}

int SetOperand(TenonCudaKernel* kernel, int32_t k, const float* elements) {
  return Well(cudaMemcpy(kernel->operands[size_t(k)], elements,
                         kernel->elements[size_t(k)] * sizeof(float), cudaMemcpyHostToDevice))
             ? 0
             : 1;
}

int GetOutput(TenonCudaKernel* kernel, float* elements) {
  return Well(cudaStreamSynchronize(kernel->cuda->stream)) &&
                 Well(cudaMemcpy(elements, kernel->output, kernel->output_elements * sizeof(float),
                                 cudaMemcpyDeviceToHost))
             ? 0
             : 1;
}

int Time(TenonCudaKernel* kernel, int32_t runs, int32_t cold, double* us) {
  TenonCuda& cuda = *kernel->cuda;
  if (cold != 0 && !Well(cudaMemsetAsync(cuda.flush, 0, cuda.flush_bytes, cuda.stream))) return 1;
  *us = Microseconds(cuda, [&] {
    for (int32_t k = 0; k < runs; ++k) {
      if (!kernel->Run()) return false;
    }
    return true;
  });
  return *us < 0 ? 1 : 0;
}

}  // namespace

Launch Fastest(TenonCuda& cuda, const std::vector<Launch>& ways,
               const std::vector<size_t>& operand_elements, size_t output_elements) {
  if (ways.size() < 2) return ways.empty() ? Launch() : ways[0];
  TenonCudaKernel scratch;
  bool well = true;
  for (size_t elements : operand_elements) {
    scratch.operands.push_back(Allocate(elements));
    well = well && scratch.operands.back() != nullptr;
    if (well) cudaMemset(scratch.operands.back(), 0, elements * sizeof(float));
  }
  scratch.output = Allocate(output_elements);
  size_t best = 0;
  double best_us = -1;
  for (size_t k = 0; k < ways.size() && well && scratch.output != nullptr; ++k) {
    const auto once = [&] { return ways[k](scratch.operands, scratch.output); };
    const auto several = [&] { return once() && once() && once(); };
    if (Microseconds(cuda, once) < 0) continue;  // Warm-up.
    const double us = Microseconds(cuda, several);
    if (us >= 0 && (best_us < 0 || us < best_us)) {
      best = k;
      best_us = us;
    }
  }
  for (float* memory : scratch.operands) cudaFree(memory);
  cudaFree(scratch.output);
  return ways[best];
}

}  // namespace tenon::optimizer::cuda

extern "C" __attribute__((visibility("default"))) const TenonCudaFunctions tenon_cuda_functions = {
    kTenonCudaAbi,
    tenon::optimizer::cuda::Open,
    tenon::optimizer::cuda::Close,
    tenon::optimizer::cuda::Identity,
    tenon::optimizer::cuda::Prepare,
    tenon::optimizer::cuda::Discard,
    tenon::optimizer::cuda::SetOperand,
    tenon::optimizer::cuda::GetOutput,
    tenon::optimizer::cuda::Time,
};
