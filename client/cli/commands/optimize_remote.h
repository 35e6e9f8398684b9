// tenon optimize --server: the part of it that talks to an optimizer node.
#pragma once

#include "client/cli/commands/optimize.h"
#include "optimizer/explain/report.h"

namespace tenon::cli {

// Sends the model, shows what the server says, and puts the result in its place once its hash is
// right. The report names the files of this side. Errors: those of OptimizeClient; InvalidArgument:
// what only this machine has (packs and devices by path) is not sent.
StatusOr<optimizer::Report> OptimizeRemotely(Context& context, const OptimizeOptions& options);

}  // namespace tenon::cli
