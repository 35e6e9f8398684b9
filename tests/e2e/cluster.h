// A cluster of real processes on loopback, for tests that kill them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.h"

namespace tenon::e2e {

// `tenon serve ...` as a process that may be killed and started again with the same arguments.
// Thread-compatible.
class Service {
 public:
  // What it says goes to `log`.out and `log`.err, one run after another.
  Service(std::string name, std::vector<std::string> arguments, std::string log, std::string home);
  ~Service();  // kill -9.
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void Start();
  void Kill();  // SIGKILL, and waits for the end.
  void Send(int signal) const;
  bool IsRunning();  // Reaps it if it has ended.
  // Its exit code once it has ended by itself; -1 while it runs, within the limit; -2: a signal.
  int Await(std::chrono::seconds limit);
  // The port that this run has said `what` listens on (empty: the first). CHECKs that it says so
  // within a minute.
  int Port(const std::string& what = "");
  const std::string& name() const { return name_; }
  const std::string& log() const { return log_; }
  // Its TMPDIR.
  std::string temporary() const { return home_ + "/tmp"; }
  pid_t pid() const { return pid_; }  // -1: it does not run.
  std::vector<std::string>& arguments() { return arguments_; }
  // For the next Start: settings beside ours, and the words of a command that starts it (which must
  // become it, as `ip netns exec` does).
  std::vector<std::pair<std::string, std::string>>& environment() { return environment_; }
  std::vector<std::string>& command() { return command_; }

 private:
  std::string name_;
  std::vector<std::string> arguments_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<std::string> command_;
  std::string log_, home_;
  pid_t pid_ = -1;
  int exit_code_ = -1;
  std::size_t said_before_ = 0;  // Bytes of .out that are of earlier runs.
};

struct ClusterOptions {
  int stores = 2, workers = 3, verifiers = 2;
  std::vector<std::string> of_all;  // Further flags of every service.
  std::vector<std::string> of_coordinator;
  std::vector<std::string> of_stores;
  // Where "coordinator" and "store0", .. keep their data; empty: in the cluster's folder.
  std::map<std::string, std::string> data;
  // HOST:PORT,.. of etcd: then there are standbys, which follow the coordinator in services().
  std::string etcd;
  int standbys = 1;
};

// A coordinator and its nodes, started. Thread-compatible.
class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options = {});

  Service& coordinator() { return *services_.front(); }
  std::vector<std::unique_ptr<Service>>& services() { return services_; }
  std::string server() const { return server_; }  // HOST:PORT, with standbys HOST:PORT,..
  const testing::TempFolder& folder() const { return folder_; }

  // `tenon ARGUMENTS` of a user with a home of its own in folder().
  testing::RunResult Tenon(std::vector<std::string> arguments,
                           std::chrono::seconds limit = std::chrono::seconds(100)) const;
  // The same with --server, for commands that talk to the coordinator.
  testing::RunResult Ask(std::vector<std::string> arguments,
                         std::chrono::seconds limit = std::chrono::seconds(100)) const;
  // The last lines of every service, for failures.
  std::string Logs() const;

 private:
  testing::TempFolder folder_;
  std::vector<std::unique_ptr<Service>> services_;
  std::string server_;
};

}  // namespace tenon::e2e
