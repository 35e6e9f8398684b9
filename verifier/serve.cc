#include "verifier/serve.h"

#include <memory>

#include <fmt/format.h>

#include "core/pack/pack.h"
#include "verifier/prover_process.h"

namespace tenon::verifier {
namespace {

StatusOr<rpc::Outcome> ProveAll(ProverProcess& prover, const convert::Task& task,
                                const ServeOptions& options, const std::stop_token& unwanted) {
  const auto* proofs = std::get_if<convert::ProofTask>(&task.work);
  if (proofs == nullptr) {
    return base::InvalidArgument(fmt::format("task {}: a verifier makes proofs only", task.id));
  }
  if (proofs->semantics_version != pack::kSemanticsVersion) {
    return base::FailedPrecondition(
        fmt::format("task {}: semantics version {}, this verifier has {}; use verifiers of the "
                    "coordinator's version",
                    task.id, proofs->semantics_version, pack::kSemanticsVersion));
  }
  convert::ProofResult result;
  std::chrono::microseconds cpu{0};
  for (const std::string& rule : proofs->rules) {
    ASSIGN_OR_RETURN(ProofAnswer answer,
                     prover.Prove({.budget_scale = proofs->budget_scale, .rule = rule}, unwanted));
    RETURN_IF_ERROR(answer.status);
    const std::chrono::microseconds took(answer.cpu_us);
    if (options.on_verdict) options.on_verdict(answer.verdict, took);
    cpu += took;
    result.verdicts.push_back(std::move(answer.verdict));
  }
  return rpc::Outcome{std::move(result), std::chrono::duration_cast<rpc::Milliseconds>(cpu)};
}

}  // namespace

Status Serve(const ServeOptions& options, std::stop_token stop) {
  if (options.prover_command.empty()) {
    return base::InvalidArgument("no program for provers; give one");
  }
  ASSIGN_OR_RETURN(const auto coordinator,
                   rpc::Connection::Open(options.coordinator, options.connection));
  std::vector<std::unique_ptr<ProverProcess>> provers;
  for (unsigned k = 0; k < options.proofs; ++k) {
    provers.push_back(std::make_unique<ProverProcess>(
        ProverProcessOptions{.command = options.prover_command,
                             .limit = options.proof_limit,
                             .memory_limit_bytes = options.prover_memory_bytes}));
  }
  const rpc::NodeOptions node{
      .identity = {.id = options.node_id.empty() ? rpc::NewNodeId() : options.node_id,
                   .role = "verifier",
                   .version = options.version},
      .kinds = {convert::TaskKind::kProofs},
      .slots = options.proofs,
      .on_event = options.on_event};
  const rpc::Work work = [&](unsigned slot, const convert::Task& task, std::stop_token unwanted) {
    return ProveAll(*provers[slot], task, options, unwanted);
  };
  return rpc::RunNode(coordinator, node, work, std::move(stop));
}

}  // namespace tenon::verifier
