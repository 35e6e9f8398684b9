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

// The artifact of a job, read from store 0 and checked against the hash that the collector told.
// Unavailable; DataLoss.
StatusOr<std::string> ReadArtifact(const board::Collected& job,
                                   const rpc::ConnectionOptions& options, std::stop_token stop);
// Removes a table from all its stores. Unavailable: not from all.
Status DropTable(const board::Table& table, const rpc::ConnectionOptions& options,
                 std::stop_token stop);

}  // namespace tenon::coordinator
