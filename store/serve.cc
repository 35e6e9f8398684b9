#include "store/serve.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "client/rpc/node.h"
#include "store/service.h"
#include "store/store.h"

namespace tenon::store {
namespace {

std::string AddressOf(const std::string& advertise, int port) {
  if (advertise.empty()) return fmt::format("127.0.0.1:{}", port);
  if (!advertise.ends_with(":0")) return advertise;
  return fmt::format("{}{}", advertise.substr(0, advertise.size() - 1), port);
}

}  // namespace

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
        .address = AddressOf(options.advertise, server->port()),
        .version = options.version};
    rpc::SendHeartbeats(coordinator, identity, stop);
  } else {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait(lock, stop, [] { return false; });
  }
  if (options.on_stopping) options.on_stopping();
  return OkStatus();
}

}  // namespace tenon::store
