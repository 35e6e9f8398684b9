#include "worker/released/kernels.h"

namespace tenon::worker::released {
namespace {

struct Usable {
  std::array<const Kernels*, 3> kernels{&kPlainKernels};
  std::size_t count = 1;
  Usable() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return;
    kernels[count++] = &kAvx2Kernels;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw")) {
      return;
    }
    kernels[count++] = &kAvx512Kernels;
#endif
  }
};

}  // namespace

std::span<const Kernels* const> UsableKernels() {
  static const Usable usable;
  return {usable.kernels.data(), usable.count};
}

const Kernels& BestKernels() { return *UsableKernels().back(); }

}  // namespace tenon::worker::released
