// What `enumerate` and `generate` share.
#pragma once

#include "client/cli/commands/commands.h"
#include "client/cli/json.h"
#include "worker/enumerate.h"

namespace tenon::cli {

// The worker's options, with progress on the console and an end when the user asks for one. The
// context must outlive what is returned.
worker::EnumerateOptions ToWorkerOptions(const EnumerationOptions& options, Context& context);

// What a phase of the worker means to a person.
std::string_view EnumerationStage(std::string_view phase);

// Three quarters of the memory that the machine has free now; 0 when that is unknown.
std::uint64_t DefaultMemoryLimit();

}  // namespace tenon::cli
