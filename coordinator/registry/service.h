// RegistryService (registry.proto) over a PackShelf.
#pragma once

#include <memory>

#include "coordinator/registry/shelf.h"

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace tenon::coordinator {

// Adds the service to a server. What is returned, and the shelf, outlive the server.
std::shared_ptr<void> AddRegistry(grpc::ServerBuilder& builder, std::shared_ptr<PackShelf> shelf);

}  // namespace tenon::coordinator
