// What a server gives to one caller at most, so that a caller that is broken or means ill holds
// nothing for ever: memory, threads, or one of the few places for transfers.
//
// The numbers are part of the contract with operators (docs/operators-guide.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

namespace grpc {
class ServerBuilder;
class ServerContextBase;
}  // namespace grpc

namespace tenon::rpc {

// A peer that connects and does not speak HTTP/2 (and TLS, if asked for) is cut off after this.
inline constexpr std::chrono::seconds kHandshakeMax{10};
// A connection without calls is closed after this; one that is dead is noticed within
// kServerPing plus ten seconds.
inline constexpr std::chrono::minutes kIdleConnectionMax{10};
inline constexpr std::chrono::seconds kServerPing{30};
// Any connection is closed after this (calls go on for kLastCallsMax): no call at all lasts longer.
inline constexpr std::chrono::hours kConnectionMax{2};
inline constexpr std::chrono::minutes kLastCallsMax{10};
inline constexpr int kCallsOfAConnectionMax = 1000;
// Of what gRPC itself holds for all connections together: messages that arrive or leave.
inline constexpr std::size_t kServerBuffersBytesMax = std::size_t{1} << 30;

// Sets these for a server, and the limit of messages (kMessageBytesMax).
void SetServerLimits(grpc::ServerBuilder& builder, int threads_max);

// A transfer of many messages may take this long, and a second longer for each MiB that has moved.
inline constexpr std::chrono::seconds kTransferMax{600};

// Cancels a call that takes longer. Thread-safe.
class TransferLimit {
 public:
  // `context` outlives this object.
  TransferLimit(grpc::ServerContextBase* context, std::chrono::milliseconds limit);
  ~TransferLimit();
  TransferLimit(const TransferLimit&) = delete;
  TransferLimit& operator=(const TransferLimit&) = delete;

  void Moved(std::size_t bytes);

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;
};

}  // namespace tenon::rpc
