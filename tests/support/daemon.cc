#include "tests/support/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/check.h"

extern char** environ;

namespace tenon::testing {

Daemon::Daemon(const std::vector<std::string>& arguments,
               const std::vector<std::pair<std::string, std::string>>& environment) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  std::vector<std::string> words = arguments, settings;
  for (char** e = environ; *e != nullptr; ++e) settings.emplace_back(*e);
  for (const auto& [name, value] : environment) settings.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& setting : settings) envp.push_back(setting.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  CHECK(posix_spawnp(&pid_, argv[0], &files, nullptr, argv.data(), envp.data()) == 0);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  char c = 0;
  while (read(ends[0], &c, 1) == 1 && c != '\n') first_line_ += c;
  close(ends[0]);
}

Daemon::~Daemon() {
  if (has_ended()) return;
  Signal(SIGKILL);
  Wait();
}

void Daemon::Signal(int signal) const {
  if (!ended_) kill(pid_, signal);
}

int Daemon::Wait() {
  int status = 0;
  while (!ended_ && waitpid(pid_, &status, 0) < 0) CHECK(errno == EINTR);
  if (!ended_) signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ended_ = true;
  return signal_;
}

bool Daemon::has_ended() {
  int status = 0;
  if (ended_ || waitpid(pid_, &status, WNOHANG) != pid_) return ended_;
  ended_ = true;
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return true;
}

}  // namespace tenon::testing
