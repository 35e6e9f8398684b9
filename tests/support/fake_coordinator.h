// A coordinator that hands out the tasks it was given and remembers what nodes said: for tests of
// workers and verifiers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/convert/work.h"

namespace tenon::testing {

// Thread-safe.
class FakeCoordinator {
 public:
  FakeCoordinator();
  ~FakeCoordinator();

  std::string endpoint() const;  // The same for life.
  // Nobody can reach it until Start.
  void Stop();
  void Start();

  void Add(const convert::Task& task);
  // Tells the next heartbeats that all their leases are lost, and offers the tasks anew.
  void LoseLeases();

  std::vector<convert::Complete> completed() const;
  std::vector<convert::Release> released() const;
  std::vector<convert::Heartbeat> heartbeats() const;
  std::size_t leases() const;  // Handed out so far.

  // Waits until `done`, which may call the functions above; false after a minute. Meanwhile leases
  // end of which nothing is heard, such as one given to a worker just killed.
  bool WaitUntil(const std::function<bool()>& done) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::testing
