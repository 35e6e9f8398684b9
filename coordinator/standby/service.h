// Standby: the server of a coordinator that does not lead. It answers every call with UNAVAILABLE,
// the reason NOT_LEADER and the leader's address (client/rpc/connection.h goes there), and is
// NOT_SERVING for the health service.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/status.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace tenon::coordinator {

// Thread-safe.
class Standby {
 public:
  // Null credentials: open. Unavailable: the port cannot be bound.
  static StatusOr<std::unique_ptr<Standby>> Start(
      const std::string& listen, const std::shared_ptr<grpc::ServerCredentials>& credentials);
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;
  ~Standby();  // The port is free then.

  int port() const;
  // Who leads, as far as is known.
  void SetLeader(const std::optional<std::string>& leader);

 private:
  struct Impl;
  explicit Standby(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::coordinator
