#include "verifier/prover_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

extern char** environ;

namespace tenon::verifier {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStopPoll{100};

ProofAnswer Unknown(const std::string& reason) {
  ProofAnswer out;
  out.verdict.kind = convert::VerdictKind::kUnknown;
  out.verdict.reason = reason;
  out.verdict.repeatable = false;
  return out;
}

}  // namespace

// A socket pair rather than pipes: writing to a child that died is an error then, not a SIGPIPE.
Status ProverProcess::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::Internal(fmt::format("a prover's socket: {}", strerror(errno)));
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
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
        fmt::format("{}: a prover cannot be started: {}", options_.command[0], strerror(error)));
  }
  if (options_.memory_limit_bytes != 0) {
    const rlimit limit{options_.memory_limit_bytes, options_.memory_limit_bytes};
    prlimit(pid_, RLIMIT_AS, &limit, nullptr);
  }
  fd_ = ends[0];
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  ++started_;
  return OkStatus();
}

std::string ProverProcess::Kill() {
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

ProverProcess::End ProverProcess::Exchange(std::string_view request,
                                           std::chrono::milliseconds limit,
                                           const std::stop_token& stop, std::string& answer) {
  const Clock::time_point deadline = Clock::now() + limit;
  std::string in;
  while (true) {
    if (stop.stop_requested()) return End::kStopped;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return End::kHung;
    pollfd wait{fd_, short(request.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    const int ready = poll(&wait, 1, int(std::min(left, kStopPoll).count()));
    if (ready < 0 && errno != EINTR) return End::kDied;
    if (ready <= 0) continue;
    if ((wait.revents & POLLOUT) != 0 && !request.empty()) {
      const ssize_t n = send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return End::kDied;
      if (n > 0) request.remove_prefix(std::size_t(n));
      continue;
    }
    char buffer[4096];
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return End::kDied;
    in.append(buffer, std::size_t(n));
    if (in.size() < 4) continue;
    std::uint32_t size = 0;
    for (int k = 3; k >= 0; --k) size = size << 8 | static_cast<unsigned char>(in[std::size_t(k)]);
    if (size > kFrameBytesMax || in.size() > 4 + std::size_t{size}) return End::kDied;
    if (in.size() < 4 + std::size_t{size}) continue;
    answer = in.substr(4);
    return End::kAnswered;
  }
}

StatusOr<ProofAnswer> ProverProcess::Prove(const ProofRequest& request,
                                           const std::stop_token& stop) {
  const std::string payload = Encode(request);
  if (payload.size() > kFrameBytesMax) {
    return base::InvalidArgument("a rule of more than 1 MiB is not proved");
  }
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) {
    frame += static_cast<char>(payload.size() >> shift & 0xff);
  }
  frame += payload;
  const std::chrono::milliseconds limit = options_.limit * request.budget_scale;
  for (int attempt = 1;; ++attempt) {
    if (pid_ < 0) RETURN_IF_ERROR(Start());
    std::string answer;
    switch (Exchange(frame, limit, stop, answer)) {
      case End::kAnswered: {
        auto decoded = DecodeAnswer(answer);
        if (decoded.ok()) return decoded;
        Kill();
        return Unknown("the prover answered nonsense");
      }
      case End::kStopped:
        Kill();
        return absl::CancelledError("the proof is not wanted any more");
      case End::kHung:
        Kill();
        return Unknown(fmt::format("the prover gave no answer in {} s", limit.count() / 1000));
      case End::kDied: {
        const std::string how = Kill();
        if (attempt < options_.attempts) continue;
        return Unknown("the prover died: " + how);
      }
    }
  }
}

}  // namespace tenon::verifier
