#include "optimizer/service/admission.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "core/base/check.h"
#include "proto/convert/status.h"

namespace tenon::optimizer {
namespace {

// Callers that are turned away come back after this.
constexpr std::chrono::milliseconds kRetryAfter{1000};

Status Refused(const std::string& message, const char* reason) {
  return convert::WithDetails(base::ResourceExhausted(message),
                              {.reason = reason, .retry_after = kRetryAfter});
}

}  // namespace

StatusOr<Admission::Ticket> Admission::Enter(const std::string& caller) {
  const auto share = shares_.find(caller);
  if (share != shares_.end() && share->second.all >= limits_.per_caller) {
    return Refused(fmt::format("{} models of '{}' are being optimized or wait, as many as one "
                               "caller may have here at once",
                               share->second.all, caller),
                   "QUOTA");
  }
  if (calls_.size() >= std::size_t{limits_.running} + limits_.waiting) {
    return Refused(
        fmt::format("{} models are being optimized, and {} wait: as many as there may be here",
                    running(), waiting()),
        "TOO_MANY_REQUESTS");
  }
  ++shares_[caller].all;
  calls_[next_] = {.caller = caller};
  return next_++;
}

void Admission::Ready(Ticket ticket) {
  Call& call = calls_.at(ticket);
  CHECK(call.state == State::kEntered);
  call.state = State::kReady;
  call.ready = ++ready_;
  Grant();
}

bool Admission::Runs(Ticket ticket) const { return calls_.at(ticket).state == State::kRuns; }

std::size_t Admission::Ahead(Ticket ticket) const {
  const Call& mine = calls_.at(ticket);
  return std::size_t(std::ranges::count_if(calls_, [&](const auto& entry) {
    return entry.second.state == State::kReady && entry.second.ready < mine.ready;
  }));
}

void Admission::Leave(Ticket ticket) {
  const auto call = calls_.find(ticket);
  CHECK(call != calls_.end());
  const auto share = shares_.find(call->second.caller);
  if (call->second.state == State::kRuns) {
    --running_;
    --share->second.running;
  }
  if (--share->second.all == 0) shares_.erase(share);
  calls_.erase(call);
  Grant();
}

void Admission::Grant() {
  while (running_ < limits_.running) {
    Call* best = nullptr;
    const auto rank = [&](const Call& call) {
      return std::tuple(shares_.at(call.caller).running, call.ready);
    };
    for (auto& [ticket, call] : calls_) {
      if (call.state != State::kReady) continue;
      if (best == nullptr || rank(call) < rank(*best)) best = &call;
    }
    if (best == nullptr) return;
    best->state = State::kRuns;
    ++shares_.at(best->caller).running;
    ++running_;
  }
}

}  // namespace tenon::optimizer
