#include "worker/serve.h"

#include <vector>

#include "worker/tasks.h"

namespace tenon::worker {

Status Serve(const ServeOptions& options, std::stop_token stop) {
  ASSIGN_OR_RETURN(const auto coordinator,
                   rpc::Connection::Open(options.coordinator, options.connection));
  std::vector<std::unique_ptr<TaskRunner>> runners;
  for (unsigned k = 0; k < options.slots; ++k) {
    runners.push_back(std::make_unique<TaskRunner>(
        TaskOptions{.stores = options.connection,
                    .store_patience = options.store_patience,
                    .memory_limit_bytes = options.memory_limit_bytes}));
  }
  const rpc::NodeOptions node{
      .identity = {.id = options.node_id.empty() ? rpc::NewNodeId() : options.node_id,
                   .role = "worker",
                   .version = options.version},
      .kinds = {convert::TaskKind::kShard, convert::TaskKind::kCollect, convert::TaskKind::kJoin},
      .slots = options.slots,
      .on_event = options.on_event};
  const rpc::Work work = [&](unsigned slot, const convert::Task& task, std::stop_token unwanted) {
    return runners[slot]->Run(task, std::move(unwanted));
  };
  return rpc::RunNode(coordinator, node, work, std::move(stop));
}

}  // namespace tenon::worker
