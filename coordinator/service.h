// JobService and WorkService over a Coordinator.
#pragma once

#include <memory>
#include <vector>

#include "coordinator/run/coordinator.h"
#include "coordinator/serve.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace tenon::coordinator {

// To be registered with a server; the coordinator outlives them.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Coordinator& coordinator);

// Builds the server of `options` with these services, its own and what `customize` adds, and serves
// until `stop`. Unavailable: the port cannot be bound.
Status ServeGrpc(const ServeOptions& options, store::Store& store, Coordinator& coordinator,
                 std::stop_token stop);

}  // namespace tenon::coordinator
