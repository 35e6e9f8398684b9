#include "verifier/child.h"

#include <time.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "client/rpc/child_process.h"
#include "core/base/bytes.h"
#include "core/rules/canonical.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

constexpr std::size_t kReasonBytesMax = 8 << 10;

std::uint64_t CpuMicroseconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::uint64_t(t.tv_sec) * 1'000'000 + std::uint64_t(t.tv_nsec) / 1000;
}

ProofAnswer AnswerTo(std::string_view payload) {
  const std::uint64_t before = CpuMicroseconds();
  ProofAnswer answer;
  const auto request = DecodeRequest(payload);
  if (!request.ok()) {
    answer.status = request.status();
    return answer;
  }
  auto verdict = ProveBytes(request->rule, request->budget_scale);
  answer.status = verdict.status();
  if (verdict.ok()) answer.verdict = *std::move(verdict);
  answer.cpu_us = CpuMicroseconds() - before;
  return answer;
}

template <class T>
T Times(T value, std::uint32_t scale) {
  const double product = double(value) * scale;
  return product < double(std::numeric_limits<T>::max()) ? T(product)
                                                         : std::numeric_limits<T>::max();
}

}  // namespace

std::string Encode(const ProofRequest& request) {
  std::string out;
  base::PutVarint(out, request.budget_scale);
  base::PutString(out, request.rule);
  return out;
}

StatusOr<ProofRequest> DecodeRequest(std::string_view payload) {
  base::ByteReader in(payload);
  ProofRequest out;
  out.budget_scale = std::uint32_t(in.Count(1000, "the budget is more than 1000 fold"));
  out.rule = in.String();
  in.End();
  if (!in.ok()) return base::InvalidArgument(fmt::format("a request: {}", in.error()));
  return out;
}

std::string Encode(const ProofAnswer& answer) {
  std::string out;
  base::PutVarint(out, std::uint64_t(answer.status.raw_code()));
  base::PutString(out, base::Message(answer.status));
  base::PutByte(out, std::uint8_t(answer.verdict.kind));
  base::PutByte(out, answer.verdict.repeatable ? 1 : 0);
  base::PutVarint(out, answer.verdict.rlimit);
  base::PutString(out, answer.verdict.reason);
  base::PutString(out, answer.verdict.certificate);
  base::PutVarint(out, answer.cpu_us);
  return out;
}

StatusOr<ProofAnswer> DecodeAnswer(std::string_view payload) {
  base::ByteReader in(payload);
  ProofAnswer out;
  const auto code = absl::StatusCode(in.Count(16, "a status"));
  const std::string message(in.String());
  if (code != absl::StatusCode::kOk) out.status = Status(code, message);
  const std::uint8_t kind = in.Byte();
  if (kind < 1 || kind > 6) in.Fail("a verdict");
  out.verdict.kind = convert::VerdictKind(kind);
  out.verdict.repeatable = in.Byte() == 1;
  out.verdict.rlimit = in.Varint();
  out.verdict.reason = in.String();
  out.verdict.certificate = in.String();
  out.cpu_us = in.Varint();
  in.End();
  if (!in.ok()) return base::InvalidArgument(fmt::format("an answer: {}", in.error()));
  return out;
}

Budget Scaled(std::uint32_t scale) {
  Budget budget;
  budget.terms.steps = Times(budget.terms.steps, scale);
  budget.cells = Times(budget.cells, scale);
  budget.replans = Times(budget.replans, scale);
  budget.solver.integer_rlimit = Times(budget.solver.integer_rlimit, scale);
  budget.solver.real_rlimit = Times(budget.solver.real_rlimit, scale);
  budget.solver.watchdog *= scale;
  return budget;
}

StatusOr<convert::ProofVerdict> ProveBytes(std::string_view bytes, std::uint32_t budget_scale) {
  ASSIGN_OR_RETURN(const rules::Rule rule, rules::DecodeRule(bytes));
  ASSIGN_OR_RETURN(Verdict verdict, Prove(rule, Scaled(budget_scale)));
  std::string certificate = certify::CertifyOrDemote(rule, verdict);
  convert::ProofVerdict out{.kind = convert::VerdictKind(verdict.kind),
                            .reason = verdict.reason,
                            .repeatable = verdict.repeatable,
                            .rlimit = std::uint64_t(verdict.counters.rlimit)};
  out.certificate = std::move(certificate);
  if (verdict.counterexample) out.reason = Print(*verdict.counterexample);
  if (out.reason.size() > kReasonBytesMax) out.reason.resize(kReasonBytesMax);
  return out;
}

int RunProverChild(int in, int out) {
  // A hung solver would not notice that there is nobody to prove for.
  rpc::DieWithParent();
  std::string payload;
  while (rpc::ReadFrame(in, payload)) {
    if (!rpc::WriteFrame(out, Encode(AnswerTo(payload)))) return 1;
  }
  return 0;
}

}  // namespace tenon::verifier
