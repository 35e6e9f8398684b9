// CHECK: the program is wrong. On in release builds too: an optimizer that goes on after a broken
// invariant ships a wrong model, which costs more than a crash.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tenon::base {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: internal error: CHECK(%s) failed\n", file, line, what);
  std::abort();
}

}  // namespace tenon::base

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::tenon::base::CheckFailed(__FILE__, __LINE__, #condition))
