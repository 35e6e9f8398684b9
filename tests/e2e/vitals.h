// What a running process holds, and whether it holds more and more.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::e2e {

// Of a process and its children, from /proc. A process that ends meanwhile counts as nothing.
struct Vitals {
  double rss_mib = 0;
  int threads = 0;
  int files = 0;        // Descriptors of files with a name.
  int connections = 0;  // All other descriptors: sockets, pipes, polls.
  int processes = 0;
};
Vitals VitalsOf(pid_t pid);

// Samples at equal times, oldest first, without the first third: a process that has just started
// fills its caches, arenas and pools.
struct Trend {
  double mean = 0;
  double growth = 0;  // Of the line through the samples, from the first to the last.
  double before = 0;  // The largest of the first half.
  double after = 0;   // The least of the second half: what has not come back.
  std::size_t samples = 0;
};
Trend TrendOf(const std::vector<double>& all);

}  // namespace tenon::e2e
