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
  explicit ProverProcess(ProverProcessOptions options) : options_(std::move(options)) {}
  ~ProverProcess() { Kill(); }
  ProverProcess(const ProverProcess&) = delete;
  ProverProcess& operator=(const ProverProcess&) = delete;

  // The child's answer. When it hangs or dies: unknown, not repeatable, and a new child for the
  // next rule. CANCELLED after `stop`. Internal: no child can be started.
  StatusOr<ProofAnswer> Prove(const ProofRequest& request, const std::stop_token& stop = {});

  pid_t pid() const { return pid_; }  // -1: none.
  std::uint64_t started() const { return started_; }

 private:
  enum class End : std::uint8_t { kAnswered, kDied, kHung, kStopped };
  Status Start();
  // Kills the child if there is one; says how it ended.
  std::string Kill();
  End Exchange(std::string_view request, std::chrono::milliseconds limit,
               const std::stop_token& stop, std::string& answer);

  ProverProcessOptions options_;
  pid_t pid_ = -1;
  int fd_ = -1;  // Our end.
  std::uint64_t started_ = 0;
};

}  // namespace tenon::verifier
