// tenon optimize, as commands.h says for the others.
#pragma once

#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/connect.h"
#include "client/cli/commands/gate.h"
#include "optimizer/run/settings.h"

namespace tenon::cli {

struct OptimizeOptions {
  std::string model;
  std::string out;
  std::vector<std::string> packs;
  optimizer::RunSettings settings;
  ConnectOptions server;  // Its server: empty: it is done here.
  double deadline_s = 0;  // Of the whole, on a server; 0: long after the limits of time.
  std::string report;
  std::string json;
  GateFlags gate;
};
// The answer is no when a threshold of the gate is not met; everything is written all the same.
// A stop ends the search; the best model so far is compared and written. A stop during the
// comparison, or of what a server does, ends the command, and nothing is written.
Outcome OptimizeCommand(Context& context, const OptimizeOptions& options);

}  // namespace tenon::cli
