// OptimizeClient: models optimized by an optimizer node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/rpc/connection.h"
#include "proto/convert/optimize.h"

namespace tenon::rpc {

struct OptimizeHooks {
  // Bytes of the model, which has as many as the options say.
  std::function<StatusOr<std::string>(std::uint64_t at, std::size_t bytes)> read;
  // The next bytes of the result; `at` 0: it begins, perhaps anew.
  std::function<Status(std::uint64_t at, std::string_view bytes)> write;
  // "send" with bytes, then as OptimizeProgress of optimize.proto.
  std::function<void(const std::string& phase, std::uint64_t done)> progress;
  std::function<void(const std::string& note)> note;
};

struct OptimizeAnswer {
  std::uint64_t model_bytes = 0;
  std::string
      model_sha256;  // As the server says; whether the bytes have it is the caller's to see.
  bool cached = false;
  std::string report_json;
};

// Thread-safe.
class OptimizeClient {
 public:
  explicit OptimizeClient(std::shared_ptr<Connection> connection);

  // Sends the model, waits, fetches the result. `limit` is the deadline of the whole: the server
  // sees to it that there is a result by then. While servers cannot be reached or have too much to
  // do, it is tried again. Errors: optimize.proto; those of `read` and `write`; DataLoss: what came
  // does not fit. CANCELLED: `stop`, of which the server hears, too.
  StatusOr<OptimizeAnswer> Optimize(const convert::OptimizeOptions& options, Milliseconds limit,
                                    const OptimizeHooks& hooks, std::stop_token stop = {}) const;

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace tenon::rpc
