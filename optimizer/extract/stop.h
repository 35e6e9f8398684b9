// When to stop early: somebody asked for it, or the time is up.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <stop_token>
#include <utility>

namespace tenon::optimizer::extract {

// Thread-compatible; cheap to ask.
class Stop {
 public:
  using Clock = std::chrono::steady_clock;

  Stop(std::stop_token token, std::optional<Clock::time_point> deadline)
      : token_(std::move(token)), deadline_(deadline) {}

  bool Asked() const { return token_.stop_requested(); }
  bool Late() const { return deadline_ && Clock::now() >= *deadline_; }
  bool Now() const { return Asked() || Late(); }
  // Seconds to the deadline, at least 0; nothing without one.
  std::optional<double> SecondsLeft() const {
    if (!deadline_) return std::nullopt;
    return std::max(0.0, std::chrono::duration<double>(*deadline_ - Clock::now()).count());
  }
  // The same, but not later than `seconds` from now.
  Stop Within(double seconds) const {
    const auto at = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(seconds));
    return {token_, deadline_ ? std::min(*deadline_, at) : at};
  }

 private:
  std::stop_token token_;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace tenon::optimizer::extract
