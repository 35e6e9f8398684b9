// A process that runs beside a test until it is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::testing {

// Thread-compatible.
class Daemon {
 public:
  // Starts it; CHECKs that it could start and that its first line on stdout came, or that it ended
  // before (kill points).
  Daemon(const std::vector<std::string>& arguments,
         const std::vector<std::pair<std::string, std::string>>& environment = {});
  ~Daemon();  // kill -9.
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  const std::string& first_line() const { return first_line_; }
  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Waits for its end; the signal that ended it, 0: it exited.
  int Wait();
  bool has_ended();

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  int signal_ = 0;
  std::string first_line_;
};

}  // namespace tenon::testing
