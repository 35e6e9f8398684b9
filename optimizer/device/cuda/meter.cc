#include "optimizer/device/cuda/meter.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "optimizer/device/sample.h"

namespace tenon::optimizer::cuda {
namespace {

constexpr const char* kSymbol = "tenon_cuda_functions";
constexpr const char* kFile = "libtenon_cuda.so";

Status NoModule(const std::string& path, std::string_view why) {
  return base::FailedPrecondition(
      fmt::format("device cuda: {}: {}; build where nvcc is, on a machine with a GPU, or name "
                  "another device",
                  path, why));
}

class TimedKernel final : public Sampled {
 public:
  explicit TimedKernel(std::unique_ptr<Module::Kernel> kernel) : kernel_(std::move(kernel)) {}
  double Time(int runs) override { return Kept(kernel_->Time(runs, false)); }
  double TimeCold() override { return Kept(kernel_->Time(1, true)); }
  bool failed() const { return failed_; }

 private:
  double Kept(double us) {
    failed_ = failed_ || !std::isfinite(us);
    return failed_ ? 1 : us;
  }
  const std::unique_ptr<Module::Kernel> kernel_;
  bool failed_ = false;
};

class CudaMeter final : public Meter {
 public:
  explicit CudaMeter(std::unique_ptr<Module> module)
      : module_(std::move(module)), identity_("cuda " + module_->identity()) {}

  const std::string& identity() const override { return identity_; }
  std::vector<std::optional<Measurement>> Measure(std::span<const Operation> operations) override {
    std::vector<std::unique_ptr<Sampled>> timed;
    for (const Operation& operation : operations) {
      std::unique_ptr<Module::Kernel> kernel = module_->Prepare(operation);
      timed.push_back(kernel == nullptr ? nullptr
                                        : std::make_unique<TimedKernel>(std::move(kernel)));
    }
    // Events have a grain of half a microsecond.
    auto results = SampleInTurns(timed, {.sample_us = 100});
    for (std::size_t k = 0; k < timed.size(); ++k) {
      const auto* kernel = static_cast<const TimedKernel*>(timed[k].get());
      if (kernel != nullptr && kernel->failed()) results[k].reset();
    }
    return results;
  }

 private:
  const std::unique_ptr<Module> module_;
  const std::string identity_;
};

}  // namespace

std::string DefaultModule() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const auto installed = folder / "../lib/tenon" / kFile;
  return std::filesystem::exists(installed, error) ? installed : folder / kFile;
}

StatusOr<std::unique_ptr<Module>> Module::Open(const std::string& path) {
  if (!std::filesystem::exists(path)) return NoModule(path, "there is no such module");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NoModule(path, dlerror());
  const auto* functions = static_cast<const TenonCudaFunctions*>(dlsym(library, kSymbol));
  std::string why = "it is no module for Tenon, or one for another version";
  TenonCuda* cuda = nullptr;
  if (functions != nullptr && functions->abi == kTenonCudaAbi) {
    char error[512] = "";
    if (functions->open(&cuda, error, sizeof error) == 0) {
      return std::unique_ptr<Module>(new Module(library, functions, cuda));
    }
    why = error;
  }
  dlclose(library);
  return NoModule(path, why);
}

Module::~Module() {
  functions_->close(cuda_);
  dlclose(library_);
}

std::unique_ptr<Module::Kernel> Module::Prepare(const Operation& operation) {
  const std::optional<Plan> plan = PlanOf(operation);
  if (!plan) return nullptr;
  TenonCudaKernel* raw = nullptr;
  if (functions_->prepare(cuda_, plan->steps.data(), std::int32_t(plan->steps.size()),
                          &plan->tensors, &raw) != 0) {
    return nullptr;
  }
  auto kernel = std::make_unique<Kernel>(*functions_, raw);
  for (int k = 0; k < plan->tensors.operands; ++k) {
    // Nothing denormal, zero or not finite.
    std::vector<float> elements(std::size_t(plan->tensors.operand_elements[k]));
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = float(1 + i * 37 % 101) / 101;
    if (!kernel->SetOperand(k, elements)) return nullptr;
  }
  return kernel;
}

bool Module::Kernel::SetOperand(int k, const std::vector<float>& elements) {
  return functions_.set_operand(kernel_, k, elements.data()) == 0;
}

bool Module::Kernel::GetOutput(std::vector<float>& elements) {
  return functions_.get_output(kernel_, elements.data()) == 0;
}

double Module::Kernel::Time(int runs, bool cold) {
  double us = 0;
  return functions_.time(kernel_, runs, cold ? 1 : 0, &us) == 0 ? us : INFINITY;
}

StatusOr<std::unique_ptr<Meter>> OpenMeter(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, Module::Open(path));
  return std::unique_ptr<Meter>(new CudaMeter(std::move(module)));
}

}  // namespace tenon::optimizer::cuda
