#include "interop/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tenon::interop {
namespace {

constexpr std::int64_t kSizeMax = 1 << 20;

// What TASO pads an extent with that is `rest` modulo the stride.
std::int64_t Pad(std::int64_t kernel, std::int64_t stride, std::int64_t rest) {
  return (std::max<std::int64_t>(kernel - (rest == 0 ? stride : rest), 0) + 1) / 2;
}

// The padding if it is one for all extents and leads to the extent that TASO declares.
std::optional<std::int64_t> SamePad(std::int64_t kernel, std::int64_t stride) {
  const std::int64_t pad = Pad(kernel, stride, 0);
  for (std::int64_t extent = kernel; extent < kernel + stride; ++extent) {
    if (Pad(kernel, stride, extent % stride) != pad) return std::nullopt;
    const std::int64_t windows = (extent + 2 * pad - kernel) / stride + 1;
    if (windows != (extent + stride - 1) / stride) return std::nullopt;
  }
  return pad;
}

std::int64_t Parameter(const PeerOperator& op, PeerKey key, std::int64_t otherwise) {
  const auto it = op.parameters.find(key);
  return it == op.parameters.end() ? otherwise : it->second;
}

}  // namespace

StatusOr<graph::Shape> KernelOf(const PeerOperator& op) {
  graph::Shape kernel;
  for (const PeerKey key : {PeerKey::kKernelH, PeerKey::kKernelW}) {
    const std::int64_t size = Parameter(op, key, 0);
    if (size < 1 || size > kSizeMax) {
      return absl::FailedPreconditionError(
          fmt::format("{}: {} is {}", op.name(), NameOf(key), size));
    }
    kernel.push_back(size);
  }
  return kernel;
}

StatusOr<PeerWindow> WindowOf(const PeerOperator& op, const graph::Shape& kernel) {
  PeerWindow window;
  const std::int64_t mode = Parameter(op, PeerKey::kPad, kPadSame);
  if (mode != kPadSame && mode != kPadValid) {
    return absl::UnimplementedError(fmt::format("{}: PM_PAD is {}", op.name(), mode));
  }
  for (int a = 0; a < 2; ++a) {
    const std::int64_t stride = Parameter(op, a == 0 ? PeerKey::kStrideH : PeerKey::kStrideW, 1);
    if (stride < 1 || stride > kSizeMax) {
      return absl::FailedPreconditionError(fmt::format("{}: a stride is {}", op.name(), stride));
    }
    window.strides[a] = stride;
    if (mode == kPadValid) continue;
    if (!kernel[a].is_constant()) {
      window.open = true;
      continue;
    }
    const auto pad = SamePad(kernel[a].constant(), stride);
    if (!pad) {
      return absl::UnimplementedError(
          fmt::format("{}: SAME padding for a kernel of {} and a stride of {} is not one for all "
                      "extents",
                      op.name(), kernel[a].constant(), stride));
    }
    window.pads[a] = *pad;
  }
  return window;
}

}  // namespace tenon::interop
