#include "verifier/prover_process.h"

#include <fmt/format.h>

namespace tenon::verifier {
namespace {

using End = rpc::ChildProcess::End;

ProofAnswer Unknown(const std::string& reason) {
  ProofAnswer out;
  out.verdict.kind = convert::VerdictKind::kUnknown;
  out.verdict.reason = reason;
  out.verdict.repeatable = false;
  return out;
}

}  // namespace

StatusOr<ProofAnswer> ProverProcess::Prove(const ProofRequest& request,
                                           const std::stop_token& stop) {
  const std::string payload = Encode(request);
  if (payload.size() > rpc::kFrameBytesMax) {
    return base::InvalidArgument("a rule of more than 1 MiB is not proved");
  }
  const std::chrono::milliseconds limit = options_.limit * request.budget_scale;
  for (int attempt = 1;; ++attempt) {
    if (child_.pid() < 0) {
      RETURN_IF_ERROR(child_.Start());
      ++started_;
    }
    child_.Send(payload);
    std::string answer;
    switch (child_.Await(
        limit, [&] { return stop.stop_requested(); }, answer)) {
      case End::kFrame: {
        auto decoded = DecodeAnswer(answer);
        if (decoded.ok()) return decoded;
        child_.Kill();
        return Unknown("the prover answered nonsense");
      }
      case End::kStopped:
        child_.Kill();
        return absl::CancelledError("the proof is not wanted any more");
      case End::kLate:
        child_.Kill();
        return Unknown(fmt::format("the prover gave no answer in {} s", limit.count() / 1000));
      case End::kDied: {
        const std::string how = child_.Kill();
        if (attempt < options_.attempts) continue;
        return Unknown("the prover died: " + how);
      }
    }
  }
}

}  // namespace tenon::verifier
