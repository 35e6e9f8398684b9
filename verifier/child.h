// The inside of a prover child: a long-lived process that proves one rule after another for its
// parent (verifier/prover_process.h), so that a crash or hang of the solver is a verdict and not an
// outage.
//
// Requests and answers are frames of client/rpc/child_process.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "proto/convert/work.h"
#include "verifier/decide.h"

namespace tenon::verifier {

struct ProofRequest {
  std::uint32_t budget_scale = 1;
  std::string rule;  // Canonical bytes.
};
struct ProofAnswer {
  // An error: the rule could not be read, or prover and tester contradict each other.
  Status status = OkStatus();
  convert::ProofVerdict verdict;
  std::uint64_t cpu_us = 0;
};

// Payloads. InvalidArgument: they are no such thing.
std::string Encode(const ProofRequest& request);
std::string Encode(const ProofAnswer& answer);
StatusOr<ProofRequest> DecodeRequest(std::string_view payload);
StatusOr<ProofAnswer> DecodeAnswer(std::string_view payload);

// The default budget, as many times as much.
Budget Scaled(std::uint32_t scale);
// A rule in canonical bytes, proved here and now: the same verdict as Prove gives to the canonical
// rule, as it goes to the coordinator. DataLoss: the bytes are no rule. Errors of Prove.
StatusOr<convert::ProofVerdict> ProveBytes(std::string_view rule, std::uint32_t budget_scale);

// Reads requests from `in` and writes answers to `out` until `in` ends; the exit code of the
// process. The process dies with the thread that started it.
int RunProverChild(int in, int out);

}  // namespace tenon::verifier
