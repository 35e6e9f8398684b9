// TaskRunner: a worker's tasks, one after another: shards, parts of collecting, joining.
//
// What an enumeration's tasks have in common (the levels below the last, evaluated) is kept from
// one task to the next, so a worker prepares a job once.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "client/rpc/node.h"
#include "proto/convert/work.h"
#include "worker/enumerate.h"
#include "worker/remote_runs.h"

namespace tenon::worker {

struct TaskOptions {
  rpc::ConnectionOptions stores;
  rpc::Milliseconds store_patience = std::chrono::minutes(5);
  // Of this worker, whatever a task allows; 0: no limit of its own.
  std::uint64_t memory_limit_bytes = 0;
};

// Thread-compatible: one for each slot of a node.
class TaskRunner {
 public:
  explicit TaskRunner(TaskOptions options);

  // CANCELLED after `stop`. InvalidArgument, ResourceExhausted: of the enumeration. Unavailable and
  // others: of the stores.
  StatusOr<rpc::Outcome> Run(const convert::Task& task, std::stop_token stop);
  // How many enumerations were prepared.
  std::uint64_t prepared() const { return prepared_; }

 private:
  StatusOr<Enumerator*> Prepared(const convert::EnumerationTask& task, const std::stop_token& stop);
  StatusOr<convert::ShardResult> RunShard(const convert::ShardTask& task,
                                          const std::stop_token& stop);
  StatusOr<convert::CollectResult> RunCollect(const convert::CollectTask& task,
                                              const std::stop_token& stop);
  StatusOr<convert::JoinResult> RunJoin(const convert::JoinTask& task, const std::stop_token& stop);

  TaskOptions options_;
  StoreConnections connections_;
  convert::EnumerationTask key_;  // Of what is prepared, the stores aside.
  std::unique_ptr<Enumerator> enumerator_;
  graph::Universe universe_;
  std::uint64_t prepared_ = 0;
};

}  // namespace tenon::worker
