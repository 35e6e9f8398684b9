// The CPU of this machine, measured with oneDNN's primitives and, where it has none, own loops.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "optimizer/device/meter.h"

namespace tenon::optimizer::cpu {

// `threads`: of one operation, at least 1. With one thread the clock is that of the thread, so what
// else the machine does hardly matters; with several it is the wall's. Internal: oneDNN does not
// start.
StatusOr<std::unique_ptr<Meter>> OpenMeter(int threads);

}  // namespace tenon::optimizer::cpu
