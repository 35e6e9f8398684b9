// Kernels, strides and padding of a peer's operator.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/graph/type.h"
#include "interop/peer_rule.h"

namespace tenon::interop {

struct PeerWindow {
  std::int64_t strides[2] = {1, 1};
  std::int64_t pads[2] = {0, 0};  // On both sides.
  bool open = false;              // SAME padding of a kernel whose size is not known (yet).
};

// The kernel that the parameters name. FailedPrecondition: they do not, or it is empty.
StatusOr<graph::Shape> KernelOf(const PeerOperator& op);

// Strides and padding for a kernel. Unimplemented: SAME padding that is not the same for every
// extent. FailedPrecondition: a stride below 1.
StatusOr<PeerWindow> WindowOf(const PeerOperator& op, const graph::Shape& kernel);

}  // namespace tenon::interop
