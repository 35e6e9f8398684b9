// A home of its own for `tenon` as a user would run it, and a universe that takes no time.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/process.h"

namespace tenon {

inline constexpr const char* kSmall = R"(name: "small"
outputs: SINGLE
max_operators: 2
input { name: "a" kind: ACTIVATION shape: [2, 3] }
operator { name: "Relu" }
operator { name: "Transpose" attribute { name: "perm" value { ints { at: [1, 0] } } } }
)";

class HomeTest : public ::testing::Test {
 protected:
  testing::RunResult Tenon(const std::vector<std::string>& arguments) const {
    return testing::Tenon(arguments, {.environment = {{"HOME", home_.path()},
                                                      {"XDG_CONFIG_HOME", home_ / "config"},
                                                      {"XDG_CACHE_HOME", home_ / "cache"}}});
  }

  testing::TempFolder home_;
};

}  // namespace tenon
