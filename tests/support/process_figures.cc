#include "tests/support/process_figures.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/check.h"

namespace tenon::testing {

ProcessFigures FiguresOf(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  ProcessFigures out;
  std::ifstream status(folder + "/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      status >> out.rss_bytes;
      out.rss_bytes *= 1024;
    } else if (word == "Threads:") {
      status >> out.threads;
    }
  }
  CHECK(out.threads > 0);
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder + "/fd")) {
    ++out.files;
  }
  return out;
}

}  // namespace tenon::testing
