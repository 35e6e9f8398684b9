// A small HTTP server for metrics, health and pages: GET only, a few threads.
//
// It runs civetweb, whose threads have small stacks: no library with much thread-local storage
// (cuBLASLt) may be linked into the same program.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace tenon::observe {

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

// Thread-safe.
class HttpServer {
 public:
  // `listen` is HOST:PORT, with port 0 for any free one. `answer` is called from several threads
  // with the path ("/jobs") of a GET. Unavailable: the port cannot be bound; InvalidArgument.
  static StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& listen, std::function<Response(const std::string& path)> answer);
  // Ends calls in progress.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::observe
