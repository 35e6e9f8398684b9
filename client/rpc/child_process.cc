#include "client/rpc/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/base/check.h"

extern char** environ;

namespace tenon::rpc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStopPoll{100};

std::uint32_t LengthOf(const char* bytes) {
  std::uint32_t size = 0;
  for (int k = 3; k >= 0; --k) size = size << 8 | static_cast<unsigned char>(bytes[k]);
  return size;
}

std::string Framed(std::string_view payload) {
  CHECK(payload.size() <= kFrameBytesMax);
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) {
    frame += static_cast<char>(payload.size() >> shift & 0xff);
  }
  frame += payload;
  return frame;
}

bool ReadAll(int fd, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t n = read(fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= std::size_t(n);
  }
  return true;
}

}  // namespace

// A socket pair rather than pipes: writing to a child that died is an error then, not a SIGPIPE.
Status ChildProcess::Start() {
  CHECK(pid_ < 0);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::Internal(fmt::format("a child's socket: {}", strerror(errno)));
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  if (!options_.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&files, options_.directory.c_str());
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Signals as in a new program, whatever this one blocks; and a group of its own, so that Ctrl-C
  // reaches this process alone, which then ends in order.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (std::string& a : options_.command) arguments.push_back(a.data());
  arguments.push_back(nullptr);
  const int error =
      posix_spawn(&pid_, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    pid_ = -1;
    return base::Internal(
        fmt::format("{}: it cannot be started: {}", options_.command[0], strerror(error)));
  }
  if (options_.memory_limit_bytes != 0) {
    const rlimit limit{options_.memory_limit_bytes, options_.memory_limit_bytes};
    prlimit(pid_, RLIMIT_AS, &limit, nullptr);
  }
  fd_ = ends[0];
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  in_.clear();
  out_.clear();
  return OkStatus();
}

std::string ChildProcess::Kill() {
  if (pid_ < 0) return "it was not running";
  close(fd_);
  fd_ = -1;
  // Perhaps it has ended by itself; then that is how it ended.
  int status = 0;
  pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == 0) {
    kill(pid_, SIGKILL);
    while ((ended = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("signal {} ended it", WTERMSIG(status));
  return fmt::format("it ended with exit code {}", WEXITSTATUS(status));
}

void ChildProcess::Send(std::string_view payload) { out_ += Framed(payload); }

bool ChildProcess::TakeFrame(std::string& payload, bool& nonsense) {
  if (in_.size() < 4) return false;
  const std::uint32_t size = LengthOf(in_.data());
  nonsense = size > kFrameBytesMax;
  if (nonsense || in_.size() < 4 + std::size_t{size}) return false;
  payload = in_.substr(4, size);
  in_.erase(0, 4 + std::size_t{size});
  return true;
}

ChildProcess::End ChildProcess::Await(std::chrono::milliseconds limit,
                                      const std::function<bool()>& stopped, std::string& payload) {
  const Clock::time_point deadline = Clock::now() + limit;
  while (true) {
    if (stopped()) return End::kStopped;
    bool nonsense = false;
    if (TakeFrame(payload, nonsense)) return End::kFrame;
    if (nonsense) return End::kDied;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return End::kLate;
    pollfd wait{fd_, short(out_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    const int ready = poll(&wait, 1, int(std::min(left, kStopPoll).count()));
    if (ready < 0 && errno != EINTR) return End::kDied;
    if (ready <= 0) continue;
    if ((wait.revents & POLLOUT) != 0 && !out_.empty()) {
      const ssize_t n = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return End::kDied;
      if (n > 0) out_.erase(0, std::size_t(n));
      continue;
    }
    char buffer[4096];
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return End::kDied;
    in_.append(buffer, std::size_t(n));
  }
}

void DieWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

bool ReadFrame(int fd, std::string& payload) {
  char length[4];
  if (!ReadAll(fd, length, sizeof(length))) return false;
  const std::uint32_t size = LengthOf(length);
  if (size > kFrameBytesMax) return false;
  payload.resize(size);
  return ReadAll(fd, payload.data(), size);
}

bool WriteFrame(int fd, std::string_view payload) {
  const std::string frame = Framed(payload);
  for (std::string_view rest = frame; !rest.empty();) {
    const ssize_t n = write(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    rest.remove_prefix(std::size_t(n));
  }
  return true;
}

}  // namespace tenon::rpc
