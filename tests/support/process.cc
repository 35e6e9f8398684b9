#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/check.h"

extern char** environ;

namespace tenon::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> fds{};
    CHECK(::pipe2(fds.data(), O_CLOEXEC) == 0);
    read = fds[0];
    write = fds[1];
  }
};

std::vector<std::string> Environment(const RunOptions& options) {
  std::vector<std::string> entries;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    const bool replaced =
        std::any_of(options.environment.begin(), options.environment.end(),
                    [&](const auto& e) { return entry.starts_with(e.first + "="); });
    if (!replaced) entries.push_back(entry);
  }
  for (const auto& [name, value] : options.environment) entries.push_back(name + "=" + value);
  return entries;
}

pid_t Spawn(const std::vector<std::string>& arguments, const RunOptions& options, const Pipe& in,
            const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  if (!options.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.directory.c_str());
  }
  std::vector<std::string> strings = arguments, environment = Environment(options);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, strings[0].c_str(), &actions, nullptr,
                                   Pointers(strings).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  CHECK(error == 0);
  return pid;
}

}  // namespace

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

RunResult Run(const std::vector<std::string>& arguments, const RunOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe in, out, err;
  const auto start = Clock::now();
  const pid_t pid = Spawn(arguments, options, in, out, err);
  for (const int fd : {in.read, out.write, err.write}) ::close(fd);

  RunResult result;
  std::string_view input = options.stdin_text;
  bool signalled = options.signal == 0;
  int in_fd = in.write;
  std::array<pollfd, 3> fds{{{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in_fd, POLLOUT, 0}}};
  if (input.empty()) ::close(std::exchange(in_fd, -1));
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    fds[2].fd = in_fd;
    ::poll(fds.data(), fds.size(), 50);
    if (Clock::now() - start > options.limit && !result.timed_out) {
      result.timed_out = true;
      ::kill(pid, SIGKILL);
    }
    for (int k = 0; k < 2; ++k) {
      pollfd& from = fds[static_cast<std::size_t>(k)];
      if (from.fd < 0 || from.revents == 0) continue;
      std::array<char, 1 << 14> block;
      const ssize_t n = ::read(from.fd, block.data(), block.size());
      if (n > 0) {
        (k == 0 ? result.out : result.err).append(block.data(), static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        ::close(std::exchange(from.fd, -1));
      }
    }
    if (in_fd >= 0 && (fds[2].revents & (POLLOUT | POLLERR)) != 0) {
      const ssize_t n = ::write(in_fd, input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 || input.empty()) ::close(std::exchange(in_fd, -1));
    }
    if (!signalled && (result.out.find(options.signal_after) != std::string::npos ||
                       result.err.find(options.signal_after) != std::string::npos)) {
      signalled = true;
      ::kill(pid, options.signal);
    }
  }
  if (in_fd >= 0) ::close(in_fd);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

std::string Binary(const std::string& name) {
  const char* folder = std::getenv("TENON_BIN_DIR");
  CHECK(folder != nullptr);
  return std::string(folder) + "/" + name;
}

RunResult Tenon(std::vector<std::string> arguments, const RunOptions& options) {
  arguments.insert(arguments.begin(), Binary("tenon"));
  return Run(arguments, options);
}

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(const std::string& name, const std::string& text) const {
  const std::string path = *this / name;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  CHECK(file.good());
  return path;
}

std::vector<std::string> TempFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int CountLines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace tenon::testing
