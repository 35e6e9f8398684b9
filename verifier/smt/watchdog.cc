#include "verifier/smt/watchdog.h"

namespace tenon::smt {

Watchdog::~Watchdog() {
  {
    base::MutexLock lock(mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Begin() {
  {
    base::MutexLock lock(mutex_);
    ++query_;
    fired_ = false;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

bool Watchdog::End() {
  base::MutexLock lock(mutex_);
  ++query_;
  return fired_;
}

void Watchdog::Run() {
  base::MutexLock lock(mutex_);
  while (!stop_) {
    const std::uint64_t seen = query_;
    const auto changed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stop_ || query_ != seen;
    };
    if (seen % 2 == 0) {
      mutex_.Await(changed);
    } else if (!mutex_.AwaitFor(changed, limit_)) {
      // Again and again, since an interrupt that comes between two phases is lost.
      fired_ = true;
      context_.interrupt();
    }
  }
}

}  // namespace tenon::smt
