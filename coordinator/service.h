// JobService and WorkService over a Coordinator.
#pragma once

#include <memory>
#include <vector>

#include "coordinator/run/coordinator.h"
#include "coordinator/serve.h"

namespace grpc {
class ServerBuilder;
class ServerCredentials;
class Service;
}  // namespace grpc

namespace tenon::coordinator {

// To be registered with a server; the coordinator outlives them.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Coordinator& coordinator);

// Where a coordinator's server listens, and its limits. `port` is set when the server is started;
// then 0 means CannotListen.
void Listen(grpc::ServerBuilder& builder, const std::string& listen,
            const std::shared_ptr<grpc::ServerCredentials>& credentials, int& port);
Status CannotListen(const std::string& listen);

// Builds the server of `options` with these services, its own and what `customize` adds, and serves
// until `stop`. Unavailable: the port cannot be bound.
Status ServeGrpc(const ServeOptions& options, Coordinator& coordinator, std::stop_token stop);

}  // namespace tenon::coordinator
