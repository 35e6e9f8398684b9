// tenon serve optimizer: flags into the options of its role.
#pragma once

#include <string>

#include "client/cli/commands/services.h"
#include "client/cli/commands/serving.h"
#include "optimizer/service/serve.h"

namespace tenon::cli {

inline constexpr const char* kDefaultOptimizer = "127.0.0.1:7402";

// `coordinator`: HOST:PORT,.. of the registry; empty: packs come from files. Errors name the flag.
StatusOr<optimizer::ServeOptions> ReadOptimizer(Context& context, const ServeOptions& options,
                                                const std::string& data,
                                                const std::string& coordinator,
                                                const rpc::ConnectionOptions& connection,
                                                const Security& security, unsigned slots);

}  // namespace tenon::cli
