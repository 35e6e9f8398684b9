// A server between clients and a gRPC server that treats messages as a bad network and restarts of
// processes do: some are lost, some answers are lost after the server has acted, some calls arrive
// twice, some late and therefore in another order, and streams break.
//
// It knows the services of tenon.v1 only to tell calls of one message from streams; bytes pass as
// they are.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace tenon::testing {

// How often, of a thousand.
struct ProxyFaults {
  // Calls of one message.
  int lose = 0;         // The server never hears of it; the caller hears UNAVAILABLE.
  int lose_answer = 0;  // The server has acted; the caller hears UNAVAILABLE.
  int repeat = 0;       // It comes a second time, later.
  int delay = 0;        // It comes late: others overtake it. Messages of streams only come late.
  // Messages of streams: the stream ends there, on both sides. Who sent it does not know whether it
  // has arrived.
  int cut = 0;
  std::chrono::milliseconds delay_max{300};
};

struct ProxyCounts {
  int passed = 0;  // Calls and messages to which nothing happened.
  int lost = 0, answers_lost = 0, repeated = 0, delayed = 0, cut = 0;
};

// Thread-safe.
class Proxy {
 public:
  // Listens on a port of its own. The seed decides the faults, together with the order in which
  // calls come.
  Proxy(unsigned seed, const ProxyFaults& faults);
  ~Proxy();  // Ends all calls.
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::string endpoint() const;
  // Where calls go; before, all are UNAVAILABLE. Once.
  void ForwardTo(const std::string& endpoint);
  ProxyCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::testing
