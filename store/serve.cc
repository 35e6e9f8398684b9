#include "store/serve.h"

#include "client/rpc/node.h"
#include "core/base/mutex.h"
#include "store/service.h"
#include "store/store.h"

namespace tenon::store {

Status Serve(const ServeOptions& options, std::stop_token stop) {
  std::shared_ptr<rpc::Connection> coordinator;
  if (!options.coordinator.empty()) {
    ASSIGN_OR_RETURN(coordinator, rpc::Connection::Open(options.coordinator, options.connection));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                   Store::Open(options.directory, {.cache_bytes = options.cache_bytes}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                   Server::Start(*store, {.listen = options.listen,
                                          .credentials = options.credentials,
                                          .customize = options.customize,
                                          .disk_reserve_bytes = options.disk_reserve_bytes,
                                          .transfer_limit = options.transfer_limit}));
  if (options.on_started) options.on_started(*server);
  if (options.on_listening) options.on_listening(server->port());
  if (coordinator) {
    const rpc::NodeIdentity identity{
        .id = options.node_id.empty() ? rpc::NewNodeId() : options.node_id,
        .role = "store",
        .address = rpc::WithPort(options.advertise.empty() ? "127.0.0.1:0" : options.advertise,
                                 server->port()),
        .version = options.version};
    rpc::SendHeartbeats(coordinator, identity, stop);
  } else {
    base::AwaitStop(stop);
  }
  if (options.on_stopping) options.on_stopping();
  return OkStatus();
}

}  // namespace tenon::store
