// Admission: which calls an optimizer node takes, and whose turn it is to work.
//
// A few run at a time, some more wait, and nobody has more than his share of both; whoever is
// turned away is told so at once, before the model is sent. Among those that wait, the caller of
// whom the fewest run goes first, then who came first, so that a caller with many models does not
// keep others waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/base/status.h"

namespace tenon::optimizer {

struct AdmissionLimits {
  unsigned running = 1;
  unsigned waiting = 64;    // Besides those that run: sending their model, or waiting for a turn.
  unsigned per_caller = 8;  // Running and waiting, of one caller.
};

// Thread-compatible.
class Admission {
 public:
  using Ticket = std::uint64_t;

  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // ResourceExhausted, with a time to try again after: TOO_MANY_REQUESTS or QUOTA.
  StatusOr<Ticket> Enter(const std::string& caller);
  // From now on it waits for its turn.
  void Ready(Ticket ticket);
  bool Runs(Ticket ticket) const;
  // Calls that wait and came before it.
  std::size_t Ahead(Ticket ticket) const;
  // It has ended, whatever it was doing. Once for each ticket.
  void Leave(Ticket ticket);

  std::size_t running() const { return running_; }
  std::size_t waiting() const { return calls_.size() - running_; }

 private:
  enum class State : std::uint8_t { kEntered, kReady, kRuns };
  struct Call {
    std::string caller;
    State state = State::kEntered;
    std::uint64_t ready = 0;  // The order in which calls became ready.
  };
  struct Share {
    unsigned all = 0, running = 0;
  };
  void Grant();

  const AdmissionLimits limits_;
  std::map<Ticket, Call> calls_;
  std::map<std::string, Share> shares_;
  std::size_t running_ = 0;
  Ticket next_ = 1;
  std::uint64_t ready_ = 0;
};

}  // namespace tenon::optimizer
