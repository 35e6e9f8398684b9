// The packs that generate_test makes and other tests of this folder use.
#pragma once

#include <cstdlib>
#include <string>

#include "core/base/check.h"

namespace tenon::e2e {

// Where the pack of a universe lies: in the build folder, so that one run of the tests makes it
// once.
inline std::string PackPath(const std::string& universe) {
  const char* bin = std::getenv("TENON_BIN_DIR");
  CHECK(bin != nullptr);
  return std::string(bin) + "/../e2e/packs/" + universe + ".pack";
}

}  // namespace tenon::e2e
