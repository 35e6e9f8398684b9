// How commands and roles reach services: addresses, tokens, certificates.
#pragma once

#include <memory>
#include <string>

#include "client/rpc/connection.h"
#include "core/base/status.h"

namespace tenon::cli {

inline constexpr const char* kDefaultServer = "127.0.0.1:7400";

// As flags say it: paths, not contents.
struct ConnectOptions {
  std::string server;      // HOST:PORT; empty: $TENON_SERVER, else kDefaultServer.
  std::string token_file;  // Holds the caller's token; empty: $TENON_TOKEN, else none.
  bool tls = false;        // Implied by the files below.
  std::string root_certificates;
  std::string certificate;
  std::string key;
  std::string server_name;
};

// Files are read. Errors of ReadText.
StatusOr<rpc::ConnectionOptions> ReadConnection(const ConnectOptions& options);

// Errors of ReadConnection and Connection::Open. Does not connect yet.
StatusOr<std::shared_ptr<rpc::Connection>> Connect(const ConnectOptions& options);

// An error of a call, in which "the service is unreachable" and "it does not know the call" say how
// to change that.
Status Explained(const Status& status);

}  // namespace tenon::cli
