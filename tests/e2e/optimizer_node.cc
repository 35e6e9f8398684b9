#include "tests/e2e/optimizer_node.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/check.h"
#include "tests/e2e/optimized.h"

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

}  // namespace

OptimizerNode::OptimizerNode(std::vector<std::string> flags) {
  std::vector<std::string> arguments{"optimizer",      "--listen",         "127.0.0.1:0", "--data",
                                     folder_ / "data", "--metrics-listen", "127.0.0.1:0"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  service_ = std::make_unique<Service>("optimizer", arguments, folder_ / "optimizer",
                                       folder_ / "optimizer.home");
  service_->Start();
  metrics_port_ = service_->Port("metrics");
  server_ = "127.0.0.1:" + std::to_string(service_->Port("optimizer"));
}

testing::RunResult OptimizerNode::Optimize(const std::string& model, const std::string& out,
                                           std::vector<std::string> more,
                                           const testing::RunOptions& options) const {
  std::vector<std::string> arguments{"optimize", model, "-o", out, "--server", server_};
  arguments.insert(arguments.end(), more.begin(), more.end());
  testing::RunOptions how = options;
  const std::string home = folder_ / "user";
  for (const char* variable : {"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}) {
    how.environment.emplace_back(variable, home);
  }
  how.environment.emplace_back("TENON_SERVER", "");
  how.environment.emplace_back("TENON_TOKEN", "");
  return testing::Tenon(arguments, how);
}

double OptimizerNode::Metric(const std::string& name, const std::string& label) const {
  const std::string text =
      testing::Run({"curl", "--silent", "--show-error", "--fail", "--max-time", "30",
                    "http://127.0.0.1:" + std::to_string(metrics_port_) + "/metrics"})
          .out;
  double sum = 0;
  bool found = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name) || (line[name.size()] != ' ' && line[name.size()] != '{')) continue;
    if (line.find(label) == std::string::npos) continue;
    sum += std::stod(line.substr(line.rfind(' ')));
    found = true;
  }
  EXPECT_TRUE(found) << "no metric " << name << " in:\n" << text;
  return sum;
}

std::vector<pid_t> OptimizerNode::Children() const {
  std::vector<pid_t> out;
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(service_->pid()) + "/task";
  for (fs::directory_iterator it(tasks, error), end; !error && it != end; it.increment(error)) {
    std::ifstream children(it->path() / "children");
    for (pid_t child = 0; children >> child;) out.push_back(child);
  }
  return out;
}

bool OptimizerNode::AwaitIdle() const {
  return Eventually([&] {
    std::error_code error;  // A call whose model is still coming has no more than a folder.
    return Metric("tenon_optimize_running") == 0 && Metric("tenon_optimize_waiting") == 0 &&
           Children().empty() && fs::is_empty(folder_ / "data/optimizer/work", error);
  });
}

bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + 90s;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(50ms);
  }
  return true;
}

std::string MakePack(const testing::TempFolder& folder, const std::string& universe,
                     int max_operators, const std::string& version) {
  const std::string path = folder / (universe + "-" + version + ".pack");
  const testing::RunResult r = testing::Tenon(
      {"generate", "--universe", universe, "--max-operators", std::to_string(max_operators),
       "--out", path, "--name", universe + "@" + version},
      {.environment = {{"XDG_CONFIG_HOME", folder / "config"}}});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return path;
}

std::string LongModel(const testing::TempFolder& folder) {
  const std::string path = folder / "long.onnx";
  const testing::RunResult r =
      testing::Run({kPython, TENON_SOURCE_DIR "/tests/e2e/long_model.py", path});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return path;
}

}  // namespace tenon::e2e
