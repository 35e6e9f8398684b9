// ProverProcess: the outside of a prover child. Starts it, asks it, kills it when it hangs, starts
// another one when it died.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/rpc/child_process.h"
#include "core/base/status.h"
#include "verifier/child.h"

namespace tenon::verifier {

struct ProverProcessOptions {
  // The program and its arguments: something that calls RunProverChild(0, 1). [0] is a path.
  std::vector<std::string> command;
  // Of one rule, wall clock, times its budget scale. No healthy proof comes near it.
  std::chrono::milliseconds limit{300'000};
  // A child that dies may have been killed for reasons that have nothing to do with the rule: the
  // proof is then tried again, this many times in all. A hang is not tried again.
  int attempts = 2;
  // Of the child's address space; a proof that wants more dies. 0: no limit.
  std::uint64_t memory_limit_bytes = 0;
};

// The child lives as long as the thread that first asked, at most: ask from one thread.
// Thread-compatible.
class ProverProcess {
 public:
  explicit ProverProcess(const ProverProcessOptions& options)
      : options_(options),
        child_({.command = options.command, .memory_limit_bytes = options.memory_limit_bytes}) {}

  // The child's answer. When it hangs or dies: unknown, not repeatable, and a new child for the
  // next rule. CANCELLED after `stop`. Internal: no child can be started.
  StatusOr<ProofAnswer> Prove(const ProofRequest& request, const std::stop_token& stop = {});

  pid_t pid() const { return child_.pid(); }  // -1: none.
  std::uint64_t started() const { return started_; }

 private:
  const ProverProcessOptions options_;
  rpc::ChildProcess child_;
  std::uint64_t started_ = 0;
};

}  // namespace tenon::verifier
