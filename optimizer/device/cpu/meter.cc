// A cold run comes after the tensors' lines were thrown out of all caches; what they leave in the
// caches besides, code and stack, stays.
#include "optimizer/device/cpu/meter.h"

#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "optimizer/device/cpu/kernel.h"
#include "optimizer/device/sample.h"

namespace tenon::optimizer::cpu {
namespace {

// Of the kernels that are measured: a change of what one does, its layout too, makes another
// number, so that costs of before are not taken for those of now.
constexpr int kKernels = 2;

double Now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

// Throws the memory's lines out of all caches.
void Evict(const dnnl::memory& memory) {
  const auto* first = static_cast<const char*>(memory.get_data_handle());
  const std::size_t bytes = memory.get_desc().get_size();
#if defined(__x86_64__)
  for (std::size_t k = 0; k < bytes; k += 64) _mm_clflush(first + k);
  _mm_mfence();
#else
  // No instruction for it that a program may use everywhere: other memory takes the place.
  (void)first, (void)bytes;
  static std::vector<char> other(std::size_t{128} << 20);
  for (std::size_t k = 0; k < other.size(); k += 64) ++other[k];
#endif
}

class TimedKernel final : public Sampled {
 public:
  TimedKernel(std::unique_ptr<Kernel> kernel, clockid_t clock)
      : kernel_(std::move(kernel)), clock_(clock) {}

  double Time(int runs) override {
    const double start = Now(clock_);
    for (int k = 0; k < runs; ++k) kernel_->Run();
    return Now(clock_) - start;
  }
  double TimeCold() override {
    for (const dnnl::memory& m : kernel_->operands()) Evict(m);
    Evict(kernel_->output());
    return Time(1);
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const clockid_t clock_;
};

std::string_view IsaName(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    default:  // An enumeration of the library, which grows.
      return "other";
  }
}

// "AMD EPYC, family 25, model 17, stepping 1", of the first processor.
std::string CpuModel() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, out;
  for (const std::string_view field : {"model name", "cpu family", "model", "stepping"}) {
    in.clear();
    in.seekg(0);
    while (std::getline(in, line)) {
      const std::size_t colon = line.find(':');
      const std::string_view name = std::string_view(line).substr(0, line.find_first_of("\t:"));
      if (name != field || colon == std::string::npos || colon + 2 > line.size()) continue;
      const std::string_view word = field == "model name"   ? ""
                                    : field == "cpu family" ? "family"
                                                            : field;
      out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", word, word.empty() ? "" : " ",
                         line.substr(colon + 2));
      break;
    }
  }
  if (out.empty()) out = "unknown processor";
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

class CpuMeter final : public Meter {
 public:
  explicit CpuMeter(int threads) : threads_(threads) {
    const dnnl_version_t& v = *dnnl::version();
    identity_ =
        fmt::format("cpu oneDNN {}.{}.{} kernels={} threads={} isa={} {}", v.major, v.minor,
                    v.patch, kKernels, threads, IsaName(dnnl::get_effective_cpu_isa()), CpuModel());
  }

  const std::string& identity() const override { return identity_; }

  std::vector<std::optional<Measurement>> Measure(std::span<const Operation> operations) override {
    SetThreads(threads_);
    const clockid_t clock = threads_ == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    std::vector<std::unique_ptr<Sampled>> timed;
    for (const Operation& operation : operations) {
      std::unique_ptr<Kernel> kernel = MakeKernel(library_, operation);
      timed.push_back(kernel == nullptr ? nullptr
                                        : std::make_unique<TimedKernel>(std::move(kernel), clock));
    }
    return SampleInTurns(timed);
  }

 private:
  const int threads_;
  const Library library_;
  std::string identity_;
};

}  // namespace

StatusOr<std::unique_ptr<Meter>> OpenMeter(int threads) {
  try {
    return std::make_unique<CpuMeter>(threads);
  } catch (const dnnl::error& e) {
    return base::Internal(fmt::format("oneDNN does not start: {}", e.what()));
  }
}

}  // namespace tenon::optimizer::cpu
