#include "tests/e2e/cluster.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "core/base/check.h"

extern char** environ;

namespace tenon::e2e {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::vector<std::pair<std::string, std::string>> HomeAt(const std::string& home) {
  return {{"HOME", home},
          {"XDG_CONFIG_HOME", home + "/config"},
          {"XDG_CACHE_HOME", home + "/cache"},
          {"XDG_STATE_HOME", home + "/state"},
          {"TENON_TOKEN", ""},
          {"TENON_SERVER", ""}};
}

std::string Tail(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  const std::string text = testing::ReadFile(path);
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 3000));
}

}  // namespace

Service::Service(std::string name, std::vector<std::string> arguments, std::string log,
                 std::string home)
    : name_(std::move(name)),
      arguments_(std::move(arguments)),
      log_(std::move(log)),
      home_(std::move(home)) {}

Service::~Service() { Kill(); }

void Service::Start() {
  CHECK(pid_ < 0);
  std::error_code error;
  const auto before = std::filesystem::file_size(log_ + ".out", error);
  said_before_ = error ? 0 : before;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (log_ + ".out").c_str(), kAppend, 0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (log_ + ".err").c_str(), kAppend, 0644);
  std::vector<std::string> strings = command_;
  strings.insert(strings.end(), {testing::Binary("tenon"), "serve"});
  strings.insert(strings.end(), arguments_.begin(), arguments_.end());
  std::filesystem::create_directories(temporary(), error);
  std::vector<std::string> environment{"TMPDIR=" + temporary()};
  for (const auto& [key, value] : environment_) environment.push_back(key + "=" + value);
  for (const auto& [key, value] : HomeAt(home_)) environment.push_back(key + "=" + value);
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    const bool ours = std::any_of(environment.begin(), environment.end(), [&](const auto& e) {
      return e.substr(0, e.find('=')) == entry.substr(0, entry.find('='));
    });
    if (!ours) environment.push_back(entry);
  }
  const int failed =
      ::posix_spawnp(&pid_, strings[0].c_str(), &actions, nullptr,
                     testing::Pointers(strings).data(), testing::Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  CHECK(failed == 0);
}

void Service::Kill() {
  if (!IsRunning()) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void Service::Send(int signal) const {
  CHECK(pid_ > 0);
  ::kill(pid_, signal);
}

bool Service::IsRunning() {
  if (pid_ < 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  pid_ = -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  return false;
}

int Service::Await(std::chrono::seconds limit) {
  const auto end = Clock::now() + limit;
  while (IsRunning()) {
    if (Clock::now() > end) return -1;
    std::this_thread::sleep_for(20ms);
  }
  return exit_code_;
}

int Service::Port(const std::string& what) {
  const auto end = Clock::now() + 60s;
  // "metrics listen on port 1", "store listens on port 2"
  const std::string says =
      what == "metrics" ? "metrics listen on port " : what + " listens on port ";
  while (Clock::now() < end && IsRunning()) {
    const std::string said = testing::ReadFile(log_ + ".out").substr(said_before_);
    const std::size_t at = said.find(says);
    if (at != std::string::npos && said.find('\n', at) != std::string::npos) {
      return std::stoi(said.substr(at + says.size()));
    }
    std::this_thread::sleep_for(20ms);
  }
  std::fprintf(stderr, "%s says nothing of a port:\n%s", name_.c_str(),
               Tail(log_ + ".err").c_str());
  const bool listens = false;
  CHECK(listens);
  return 0;
}

Cluster::Cluster(const ClusterOptions& options) {
  const auto add = [&](const std::string& role, int number, std::vector<std::string> arguments) {
    const std::string name = role + std::to_string(number);
    arguments.insert(arguments.begin(), role);
    arguments.insert(arguments.end(), options.of_all.begin(), options.of_all.end());
    services_.push_back(
        std::make_unique<Service>(name, arguments, folder_ / name, folder_ / (name + ".home")));
    services_.back()->Start();
  };
  const auto data = [&](const std::string& name) {
    const auto given = options.data.find(name);
    return given == options.data.end() ? folder_ / (name + ".data") : given->second;
  };
  std::vector<std::string> first{"--listen",       "127.0.0.1:0",
                                 "--data",         data("coordinator"),
                                 "--min-stores",   std::to_string(std::max(options.stores, 1)),
                                 "--lease-ttl-ms", "3000"};
  if (!options.etcd.empty()) {
    // Who publishes what another one began must sign it alike.
    CHECK(Tenon({"pack", "keygen", "--out", folder_ / "key"}).exit_code == 0);
    first.insert(first.end(),
                 {"--etcd", options.etcd, "--etcd-lease-ttl", "3", "--key", folder_ / "key"});
  }
  first.insert(first.end(), options.of_coordinator.begin(), options.of_coordinator.end());
  for (int k = 0; k <= (options.etcd.empty() ? 0 : options.standbys); ++k) {
    add("coordinator", k, first);
    const std::string address = "127.0.0.1:" + std::to_string(services_.back()->Port());
    server_ += (k == 0 ? "" : ",") + address;
    // The same port after a restart.
    std::vector<std::string>& again = services_.back()->arguments();
    *std::find(again.begin(), again.end(), "127.0.0.1:0") = address;
  }
  for (int k = 0; k < options.stores; ++k) {
    std::vector<std::string> flags{"--listen", "127.0.0.1:0", "--coordinator",
                                   server_,    "--data",      data("store" + std::to_string(k))};
    flags.insert(flags.end(), options.of_stores.begin(), options.of_stores.end());
    add("store", k, flags);
    // Jobs remember their stores by address.
    std::vector<std::string>& store = services_.back()->arguments();
    *std::find(store.begin(), store.end(), "127.0.0.1:0") =
        "127.0.0.1:" + std::to_string(services_.back()->Port());
  }
  for (int k = 0; k < options.workers; ++k) {
    add("worker", k, {"--coordinator", server_, "--slots", "1"});
  }
  for (int k = 0; k < options.verifiers; ++k) {
    add("verifier", k, {"--coordinator", server_, "--slots", "1"});
  }
}

testing::RunResult Cluster::Tenon(std::vector<std::string> arguments,
                                  std::chrono::seconds limit) const {
  return testing::Tenon(std::move(arguments),
                        {.environment = HomeAt(folder_ / "user"), .limit = limit});
}

testing::RunResult Cluster::Ask(std::vector<std::string> arguments,
                                std::chrono::seconds limit) const {
  arguments.insert(arguments.end(), {"--server", server_});
  return Tenon(std::move(arguments), limit);
}

std::string Cluster::Logs() const {
  std::string text;
  for (const auto& service : services_) {
    text += "---- " + service->name() + "\n" + Tail(service->log() + ".err");
  }
  return text;
}

}  // namespace tenon::e2e
