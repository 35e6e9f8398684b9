// The part of the command line that is about thresholds: for `tenon optimize` in CI.
#pragma once

#include "client/cli/commands/gate.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tenon::cli {

void AddGate(CLI::App& command, GateFlags& flags);

}  // namespace tenon::cli
