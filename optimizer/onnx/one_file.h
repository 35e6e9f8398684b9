// A model as one file: for those who send it elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/status.h"

namespace tenon::optimizer {

// Nothing when the model at `path` refers to no data in other files, so that its file is all of it.
// Else the bytes of the same model with that data in it. Errors name `path`: NotFound; DataLoss (no
// protobuf, data that is missing or too short); ResourceExhausted: more than `limit_bytes`.
StatusOr<std::optional<std::string>> AsOneFile(const std::string& path, std::uint64_t limit_bytes);

}  // namespace tenon::optimizer
