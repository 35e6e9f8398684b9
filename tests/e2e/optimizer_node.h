// `tenon serve optimizer` as a process, models and packs for it, and what is seen of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/cluster.h"

namespace tenon::e2e {

// Thread-safe but for Start and Kill.
class OptimizerNode {
 public:
  // Started, and listening. `flags` come after those that a test needs.
  explicit OptimizerNode(std::vector<std::string> flags);

  Service& service() { return *service_; }
  std::string server() const { return server_; }
  const testing::TempFolder& folder() const { return folder_; }

  // `tenon optimize MODEL -o OUT --server ..` of a user with a home of its own.
  testing::RunResult Optimize(const std::string& model, const std::string& out,
                              std::vector<std::string> more = {},
                              const testing::RunOptions& options = {}) const;
  // The value of a metric, over all labels that contain `label`. CHECKs that there is one.
  double Metric(const std::string& name, const std::string& label = "") const;
  // Children that work on models now.
  std::vector<pid_t> Children() const;
  // Until no call is served any more and none has left a child or a file; false after a minute and
  // a half.
  bool AwaitIdle() const;

 private:
  testing::TempFolder folder_;
  std::unique_ptr<Service> service_;
  std::string server_;
  int metrics_port_ = 0;
};

// Waits until it holds; false after a minute and a half.
bool Eventually(const std::function<bool()>& holds);

// Makes a pack of a universe in `folder`, quickly, with rules that the models below are made better
// by. NAME@VERSION: `universe`@`version`.
std::string MakePack(const testing::TempFolder& folder, const std::string& universe,
                     int max_operators, const std::string& version);

// A model whose search takes for ever, or rather as long as it may.
std::string LongModel(const testing::TempFolder& folder);
// What is slow is given more time: seconds, as `--deadline` takes them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline std::string Seconds(int seconds) { return std::to_string(seconds * (kSanitized ? 10 : 1)); }

inline const std::vector<std::string> kLongSearch = {"--search", "eqsat", "--time-limit", "300"};

}  // namespace tenon::e2e
