// A long storm of all kinds: $TENON_CHAOS_MINUTES of it (half a minute unless given, as in
// ./dev test). The same seed ($TENON_STORM_SEED) strikes in the same order.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/e2e/storm.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;

TEST(ChaosTest, KillsStopsAndRestartsChangeNothing) {
  const char* given = std::getenv("TENON_CHAOS_MINUTES");
  const double minutes = given != nullptr && *given != '\0' ? std::atof(given) : 0.5;
  ASSERT_GT(minutes, 0) << "TENON_CHAOS_MINUTES is no number of minutes";
  Storm({.operators = "2",
         .blows = 20,
         .time = std::chrono::milliseconds(std::int64_t(minutes * 60'000)),
         .pause = 1000ms,
         .mixed = true});
}

}  // namespace
}  // namespace tenon::e2e
