// Leaders that are killed again and again while larger jobs run.
#include <gtest/gtest.h>

#include "tests/e2e/leaders.h"

namespace tenon::e2e {
namespace {

TEST(HaStormTest, TwelveKilledLeadersChangeNothing) { KillLeaders("3", 12); }

}  // namespace
}  // namespace tenon::e2e
