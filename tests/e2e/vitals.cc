#include "tests/e2e/vitals.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon::e2e {
namespace {

namespace fs = std::filesystem;

void Add(pid_t pid, Vitals& out) {
  const std::string proc = "/proc/" + std::to_string(pid);
  std::ifstream status(proc + "/status");
  std::string line;
  bool there = false;
  while (std::getline(status, line)) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    words >> name >> value;
    if (name == "VmRSS:") out.rss_mib += value / 1024;
    if (name == "Threads:") out.threads += int(value);
    there = true;
  }
  if (!there) return;
  ++out.processes;
  std::error_code error;
  for (fs::directory_iterator it(proc + "/fd", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    const fs::path target = fs::read_symlink(it->path(), gone);
    if (gone) continue;
    ++(target.is_absolute() ? out.files : out.connections);
  }
  // Children belong to the thread that made them.
  for (fs::directory_iterator it(proc + "/task", error), end; !error && it != end;
       it.increment(error)) {
    std::ifstream children(it->path() / "children");
    for (pid_t child = 0; children >> child;) Add(child, out);
  }
}

}  // namespace

Vitals VitalsOf(pid_t pid) {
  Vitals out;
  if (pid > 0) Add(pid, out);
  return out;
}

Trend TrendOf(const std::vector<double>& all) {
  Trend out;
  const std::vector<double> y(all.begin() + std::ptrdiff_t(all.size() / 3), all.end());
  out.samples = y.size();
  if (y.size() < 2) return out;
  const double n = double(y.size());
  double sum = 0, weighted = 0;
  for (std::size_t k = 0; k < y.size(); ++k) {
    sum += y[k];
    weighted += y[k] * (double(k) - (n - 1) / 2);
  }
  out.mean = sum / n;
  // Least squares: the sum of (k - mean)^2 is n (n^2 - 1) / 12.
  out.growth = weighted / (n * (n * n - 1) / 12) * (n - 1);
  const auto middle = y.begin() + std::ptrdiff_t(y.size() / 2);
  out.before = *std::max_element(y.begin(), middle);
  out.after = *std::min_element(middle, y.end());
  return out;
}

}  // namespace tenon::e2e
