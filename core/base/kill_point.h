// Named places where a crash test may end the process, as kill -9 would.
//
// TENON_KILL_POINT=store.write.before:3 in the environment ends it at the third visit of that
// place. Without the variable a kill point costs one comparison. They stand only where state
// changes that outlives the process, on disk or at another node, never on a hot path.
// tests/faults/kill_point_test.cc dies at each of them; a new one needs a line there.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tenon::base {

inline void KillPoint(std::string_view name) {
  struct Armed {
    std::string name;
    std::atomic<long> visits_left{0};
    Armed() {
      const char* variable = std::getenv("TENON_KILL_POINT");
      if (variable == nullptr) return;
      name = variable;
      visits_left = 1;
      if (const auto colon = name.find(':'); colon != std::string::npos) {
        visits_left = std::strtol(name.c_str() + colon + 1, nullptr, 10);
        name.resize(colon);
      }
    }
  };
  static Armed armed;
  if (armed.name.empty() || armed.name != name) return;
  if (--armed.visits_left == 0) static_cast<void>(std::raise(SIGKILL));
}

}  // namespace tenon::base

#define TENON_KILL_POINT(name) ::tenon::base::KillPoint(name)
