// The loops that take the time, one table of them for each instruction set: convolutions, pools and
// sums of values, on 32-bit integers that wrap around. tests/worker/released_test.cc compares each
// with the definitions in core/ops.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::worker::released {

// A convolution with "same" padding and stride 1: image [batch, channels, height, width], kernel
// [filters, channels / groups, kernel_height, kernel_width], whose extents are 1 or 3.
struct ConvShape {
  std::uint32_t batch = 1, channels = 1, height = 1, width = 1;
  std::uint32_t filters = 1, kernel_height = 1, kernel_width = 1, groups = 1;
};

struct Planes {
  std::uint32_t count = 1, height = 1, width = 1;
};

// Two keys an element.
struct Keys {
  const std::uint32_t* first = nullptr;
  const std::uint32_t* second = nullptr;
};

struct Kernels {
  std::string_view name;
  // `out` does not overlap the operands.
  void (*conv)(const ConvShape& shape, const std::uint32_t* image, const std::uint32_t* kernel,
               std::uint32_t* out);
  // Sums over windows of 3x3 around each element, zeros outside.
  void (*sum_pool)(const Planes& planes, const std::uint32_t* in, std::uint32_t* out);
  // Maxima of those and 0, as signed numbers.
  void (*max_pool)(const Planes& planes, const std::uint32_t* in, std::uint32_t* out);
  // The sums of data[k] * key[k] mod 2^64.
  std::array<std::uint64_t, 2> (*sums)(const std::uint32_t* data, std::uint32_t count,
                                       const Keys& keys);
};

// Those that this machine can run, the best one last.
std::span<const Kernels* const> UsableKernels();
const Kernels& BestKernels();

// Of each instruction set; run only where it is usable.
extern const Kernels kPlainKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace tenon::worker::released
