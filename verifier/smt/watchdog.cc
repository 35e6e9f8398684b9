#include "verifier/smt/watchdog.h"

#include "absl/time/time.h"

namespace tenon::smt {

Watchdog::~Watchdog() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Begin() {
  {
    absl::MutexLock lock(&mutex_);
    ++query_;
    fired_ = false;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

bool Watchdog::End() {
  absl::MutexLock lock(&mutex_);
  ++query_;
  return fired_;
}

void Watchdog::Run() {
  absl::MutexLock lock(&mutex_);
  while (!stop_) {
    const std::uint64_t seen = query_;
    const auto changed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stop_ || query_ != seen;
    };
    const auto check = absl::Condition(&changed);
    if (seen % 2 == 0) {
      mutex_.Await(check);
    } else if (!mutex_.AwaitWithTimeout(check, absl::FromChrono(limit_))) {
      // Again and again, since an interrupt that comes between two phases is lost.
      fired_ = true;
      context_.interrupt();
    }
  }
}

}  // namespace tenon::smt
