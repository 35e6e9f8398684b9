// How a measurement is made. The operations of a batch are prepared, each runs until it is warm,
// and then they take turns: in each round each is sampled once warm and once cold, so a machine
// that is slow for a while is slow for all of them. The cost is the median of the rounds.
//
// A warm sample is as many runs in a row as last kSample, after one that is not timed. A cold
// sample is a single run after the tensors' lines were thrown out of all caches; what they leave in
// the caches besides, code and stack, stays.
#include "optimizer/device/cpu/meter.h"

#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "optimizer/device/cpu/kernel.h"

namespace tenon::optimizer::cpu {
namespace {

// Microseconds.
constexpr double kSample = 20, kWarmUp = 500, kBudget = 40'000;
constexpr int kRoundsMin = 5, kRoundsMax = 15, kRunsMax = 1000, kWarmUpRuns = 3;

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

double Median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One kernel among the others of its batch.
class Sampler {
 public:
  Sampler(std::unique_ptr<Kernel> kernel, clockid_t clock)
      : kernel_(std::move(kernel)), clock_(clock) {}

  // Runs it until it is warm, and fixes how often it will run.
  void WarmUp() {
    double total = 0, best = INFINITY;
    for (int runs = 0; runs < kWarmUpRuns || (total < kWarmUp && runs < kRunsMax); ++runs) {
      const double us = Time(1);
      total += us;
      best = std::min(best, us);
    }
    best = std::max(best, 1e-2);
    runs_ = int(std::clamp(std::ceil(kSample / best), 1.0, double(kRunsMax)));
    rounds_ =
        int(std::clamp(kBudget / (best * (runs_ + 2)), double(kRoundsMin), double(kRoundsMax)));
  }
  void Round(int round) {
    if (round >= rounds_) return;
    kernel_->Run();
    warm_.push_back(Time(runs_) / runs_);
    for (const dnnl::memory& m : kernel_->operands()) Evict(m);
    Evict(kernel_->output());
    cold_.push_back(Time(1));
  }
  // Above 0, whatever the clock's grain.
  Measurement Result() const {
    constexpr double kLeast = 1e-3;
    return {std::max(Median(warm_), kLeast), std::max(Median(cold_), kLeast), rounds_};
  }

 private:
  double Time(int runs) const {
    const double start = Now(clock_);
    for (int k = 0; k < runs; ++k) kernel_->Run();
    return Now(clock_) - start;
  }

  std::unique_ptr<Kernel> kernel_;
  clockid_t clock_;
  int runs_ = 1, rounds_ = kRoundsMin;
  std::vector<double> warm_, cold_;
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
    identity_ = fmt::format("cpu oneDNN {}.{}.{} threads={} isa={} {}", v.major, v.minor, v.patch,
                            threads, IsaName(dnnl::get_effective_cpu_isa()), CpuModel());
  }

  const std::string& identity() const override { return identity_; }

  std::vector<std::optional<Measurement>> Measure(std::span<const Operation> operations) override {
    SetThreads(threads_);
    const clockid_t clock = threads_ == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    std::vector<std::optional<Sampler>> samplers;
    for (const Operation& operation : operations) {
      std::unique_ptr<Kernel> kernel = MakeKernel(library_, operation);
      samplers.emplace_back();
      if (kernel != nullptr) samplers.back().emplace(std::move(kernel), clock).WarmUp();
    }
    for (int round = 0; round < kRoundsMax; ++round) {
      for (std::optional<Sampler>& s : samplers) {
        if (s) s->Round(round);
      }
    }
    std::vector<std::optional<Measurement>> results;
    for (const std::optional<Sampler>& s : samplers) {
      results.emplace_back();
      if (s) results.back() = s->Result();
    }
    return results;
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
