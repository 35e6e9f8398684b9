// The entry of the verifier's role: a node that proves.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/rpc/node.h"
#include "core/base/status.h"

namespace tenon::verifier {

struct ServeOptions {
  std::string coordinator;  // HOST:PORT
  rpc::ConnectionOptions connection;
  std::string node_id;  // Empty: a new one.
  std::string version;
  unsigned proofs = 1;  // At a time, each in a child process.
  // What a child is: a program that calls RunProverChild(0, 1); [0] is a path.
  std::vector<std::string> prover_command;
  std::chrono::milliseconds proof_limit{300'000};
  std::uint64_t prover_memory_bytes = 0;                      // Of a child; 0: no limit.
  std::function<void(const rpc::NodeEvent& event)> on_event;  // Thread-safe; may be null.
  // Each verdict, and the child's CPU time for it; thread-safe, may be null.
  std::function<void(const convert::ProofVerdict& verdict, std::chrono::microseconds cpu)>
      on_verdict;
};

// Works until `stop`, then gives its tasks back. Blocking. InvalidArgument: the address; else
// errors of rpc::RunNode.
Status Serve(const ServeOptions& options, std::stop_token stop);

}  // namespace tenon::verifier
