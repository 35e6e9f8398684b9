// OptimizeService over a Node: messages in, messages out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "optimizer/service/node.h"
#include "optimizer/service/serve.h"

namespace tenon::optimizer {

// A server that listens. Thread-safe.
class Server {
 public:
  // The node outlives it. Unavailable: the port cannot be bound.
  static StatusOr<std::unique_ptr<Server>> Start(const ServeOptions& options, Node& node);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // What the health service says.
  void SetServing(bool serving);
  // Takes no more calls; those that run may go on for as long as `limit`, then they are cancelled.
  // Returns when all have ended.
  void Drain(std::chrono::milliseconds limit);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::optimizer
