// What a process uses, from /proc.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace tenon::testing {

struct ProcessFigures {
  std::size_t rss_bytes = 0;
  int threads = 0;
  int files = 0;  // Open descriptors.
};

// CHECKs that there is such a process.
ProcessFigures FiguresOf(pid_t pid);

}  // namespace tenon::testing
