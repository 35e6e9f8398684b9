// RegistryService (registry.proto) over a PackShelf.
#pragma once

#include <chrono>
#include <memory>

#include "client/rpc/server_limits.h"
#include "coordinator/registry/shelf.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace tenon::coordinator {

// Adds the service to a server. What is returned, and the shelf, outlive the server. A push or pull
// takes no longer than `limit` (client/rpc/server_limits.h).
std::shared_ptr<void> AddRegistry(grpc::ServerBuilder& builder, std::shared_ptr<PackShelf> shelf,
                                  std::chrono::milliseconds limit = rpc::kTransferMax);

}  // namespace tenon::coordinator
