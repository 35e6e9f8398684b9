// Artifacts of stores, by hash.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "client/rpc/store_client.h"
#include "core/base/status.h"

namespace tenon::registry {

// What was put there as `name` of `table`: `bytes` bytes with this SHA-256, hexadecimal. DataLoss:
// they are others; errors of StoreClient::GetArtifact. Thread-safe.
StatusOr<std::string> GetArtifact(const rpc::StoreClient& store, std::uint64_t table,
                                  const std::string& name, std::uint64_t bytes,
                                  const std::string& sha256, std::stop_token stop);

}  // namespace tenon::registry
