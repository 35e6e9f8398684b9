// The GPU of this machine, measured with cuBLASLt, cuDNN and own kernels: the CUDA module (abi.h),
// opened when it is asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "optimizer/device/cuda/plan.h"
#include "optimizer/device/meter.h"

namespace tenon::optimizer::cuda {

// The module of this program: libtenon_cuda.so beside it or in ../lib/tenon.
std::string DefaultModule();

// Plans on a module, with tensors of their own. Thread-compatible.
class Module {
 public:
  // FailedPrecondition: there is no such file, it was built for another program, or there is no GPU
  // that it can use; the message says what to do.
  static StatusOr<std::unique_ptr<Module>> Open(const std::string& path);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::string identity() const { return functions_->identity(cuda_); }

  class Kernel {
   public:
    Kernel(const TenonCudaFunctions& functions, TenonCudaKernel* kernel)
        : functions_(functions), kernel_(kernel) {}
    ~Kernel() { functions_.discard(kernel_); }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    // Row-major elements of an operand, as many as it has. False: the device failed.
    bool SetOperand(int k, const std::vector<float>& elements);
    // `elements` has the size of the output.
    bool GetOutput(std::vector<float>& elements);
    // Microseconds of `runs` runs in a row; infinite when the device failed.
    double Time(int runs, bool cold);

   private:
    const TenonCudaFunctions& functions_;
    TenonCudaKernel* const kernel_;
  };
  // Null: no plan, no kernel or no memory. The module outlives it.
  std::unique_ptr<Kernel> Prepare(const Operation& operation);

 private:
  Module(void* library, const TenonCudaFunctions* functions, TenonCuda* cuda)
      : library_(library), functions_(functions), cuda_(cuda) {}

  void* const library_;
  const TenonCudaFunctions* const functions_;
  TenonCuda* const cuda_;
};

// A meter on a module. Errors of Module::Open.
StatusOr<std::unique_ptr<Meter>> OpenMeter(const std::string& module);

}  // namespace tenon::optimizer::cuda
