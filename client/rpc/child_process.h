// ChildProcess: a program of ours that works for this process in one of its own, so that a crash, a
// hang or a hunger for memory ends a piece of work and not a service.
//
// Parent and child exchange frames over a socket that is the child's stdin and stdout: four bytes
// of length, low byte first, and the payload. They are one binary, so payloads have no version.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::rpc {

inline constexpr std::uint32_t kFrameBytesMax = 1 << 20;

struct ChildOptions {
  std::vector<std::string> command;      // The program and its arguments; [0] is a path.
  std::string directory;                 // Where it works; empty: here.
  std::uint64_t memory_limit_bytes = 0;  // Of its address space; 0: no limit.
};

// The child dies with the thread that started it, if it calls DieWithParent. Thread-compatible.
class ChildProcess {
 public:
  explicit ChildProcess(ChildOptions options) : options_(std::move(options)) {}
  ~ChildProcess() { Kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // There is none yet. Internal: it cannot be started.
  Status Start();
  // Kills the child if there is one; says how it ended.
  std::string Kill();
  pid_t pid() const { return pid_; }  // -1: none.

  // Sends a payload of at most kFrameBytesMax during the next Await.
  void Send(std::string_view payload);

  enum class End : std::uint8_t { kFrame, kDied, kLate, kStopped };
  // Until the child has sent a frame, which goes to `payload`, has died, has let `limit` pass, or
  // `stopped()`, which is asked every 100 ms.
  End Await(std::chrono::milliseconds limit, const std::function<bool()>& stopped,
            std::string& payload);

 private:
  bool TakeFrame(std::string& payload, bool& nonsense);

  ChildOptions options_;
  pid_t pid_ = -1;
  int fd_ = -1;  // Our end.
  std::string out_, in_;
};

// ---- the inside of a child

// The child is killed when the thread that started it ends: without it there is nobody to work for.
void DieWithParent();
// False: the other side is gone, or sends no frames.
bool ReadFrame(int fd, std::string& payload);
bool WriteFrame(int fd, std::string_view payload);

}  // namespace tenon::rpc
