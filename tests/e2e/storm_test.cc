// The storm that a cluster must survive, in a few minutes.
#include "tests/e2e/storm.h"

#include <gtest/gtest.h>

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;

TEST(StormTest, FiftyKillsOverAllRolesChangeNothing) {
  Storm({.operators = "3", .blows = 50, .pause = 1500ms});
}

}  // namespace
}  // namespace tenon::e2e
