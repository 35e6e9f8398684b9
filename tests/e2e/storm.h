// Jobs on a cluster, and what is killed meanwhile.
#pragma once

#include <chrono>
#include <string>

#include "tests/e2e/cluster.h"

namespace tenon::e2e {

// What one machine makes of the matrix universe: the path of a pack.
std::string Reference(const Cluster& cluster, const std::string& operators);
// Fetches what a job has published and expects the same content, byte for byte.
void ExpectSameContent(const Cluster& cluster, const std::string& reference,
                       const std::string& version);
// A job for the matrix universe, to its end.
testing::RunResult Submit(const Cluster& cluster, const std::string& operators,
                          const std::string& version);

struct StormOptions {
  std::string operators;
  int blows = 20;                        // At least so many, ..
  std::chrono::milliseconds time{0};     // .. and for so long.
  std::chrono::milliseconds pause{400};  // Between two, on average.
  // A blow is a kill -9; if this is set, it may also be a SIGSTOP that lasts longer than a lease,
  // or a SIGTERM, after which a service ends as it should; and two jobs run at a time.
  bool mixed = false;
};
// Strikes services of a cluster at random while jobs run one after another, and expects that each
// makes the pack that one machine makes. The seed is $TENON_STORM_SEED, else 1.
void Storm(const StormOptions& options);

}  // namespace tenon::e2e
