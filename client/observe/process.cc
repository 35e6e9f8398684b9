// From /proc, as the client libraries of Prometheus do it.
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/observe/metrics.h"

namespace tenon::observe {
namespace {

// The fields of /proc/self/stat from the third on, that is after the name in parentheses, which may
// hold anything.
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> out;
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return out;
  std::istringstream fields(text.substr(end + 1));
  for (std::string field; fields >> field;) out.push_back(field);
  return out;
}

double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

double OpenFiles() {
  std::error_code error;
  double count = -1;  // The one that reads the directory.
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

std::vector<Sample> ProcessSamples() {
  std::vector<Sample> out;
  const auto add = [&](const char* name, const char* help, bool counter, double value) {
    out.push_back({name, help, counter, {}, value});
  };
  const std::vector<std::string> stat = StatFields();
  // Numbers of fields are those of proc(5), from 1; the vector begins with the third.
  const auto field = [&](std::size_t number) {
    double value = 0;
    if (number - 3 < stat.size()) {
      const std::string& text = stat[number - 3];
      std::from_chars(text.data(), text.data() + text.size(), value);
    }
    return value;
  };
  const double ticks = double(::sysconf(_SC_CLK_TCK)), page = double(::sysconf(_SC_PAGESIZE));
  add("process_cpu_seconds_total", "CPU time of this process", true,
      (field(14) + field(15)) / ticks);
  add("process_resident_memory_bytes", "Memory of this process", false, field(24) * page);
  add("process_virtual_memory_bytes", "Address space of this process", false, field(23));
  add("process_start_time_seconds", "When it was started, since 1970", false,
      BootTime() + field(22) / ticks);
  add("process_threads", "Threads of this process", false, field(20));
  add("process_open_fds", "Files and connections that are open", false, OpenFiles());
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    add("process_max_fds", "How many may be open", false, double(limit.rlim_cur));
  }
  return out;
}

}  // namespace tenon::observe
