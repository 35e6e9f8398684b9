#include "client/cli/commands/connect.h"

#include <cstdlib>

#include "client/cli/files.h"

namespace tenon::cli {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

}  // namespace

StatusOr<rpc::ConnectionOptions> ReadConnection(const ConnectOptions& options) {
  rpc::ConnectionOptions out;
  rpc::Credentials& c = out.credentials;
  c.token = Trimmed(Environment("TENON_TOKEN"));
  const auto read = [](const std::string& path, std::string& text) -> Status {
    if (path.empty()) return OkStatus();
    ASSIGN_OR_RETURN(text, ReadText(path));
    return OkStatus();
  };
  RETURN_IF_ERROR(read(options.token_file, c.token));
  c.token = Trimmed(std::move(c.token));
  RETURN_IF_ERROR(read(options.root_certificates, c.root_certificates));
  RETURN_IF_ERROR(read(options.certificate, c.certificate));
  RETURN_IF_ERROR(read(options.key, c.key));
  c.server_name = options.server_name;
  c.tls = options.tls || !c.root_certificates.empty() || !c.certificate.empty();
  return out;
}

StatusOr<std::shared_ptr<rpc::Connection>> Connect(const ConnectOptions& options) {
  ASSIGN_OR_RETURN(const rpc::ConnectionOptions connection, ReadConnection(options));
  std::string server = options.server.empty() ? Environment("TENON_SERVER") : options.server;
  if (server.empty()) server = kDefaultServer;
  return rpc::Connection::Open(server, connection);
}

Status Explained(const Status& status) {
  if (absl::IsUnimplemented(status)) {
    return base::InvalidArgument(
        "the server there does not know this call: it has another role (stores and coordinators "
        "listen on addresses of their own) or is older; give another address with --server");
  }
  if (status.code() != absl::StatusCode::kUnavailable &&
      status.code() != absl::StatusCode::kDeadlineExceeded) {
    return status;
  }
  return base::Unavailable(base::Message(status) +
                           "; is `tenon serve` running there? give its address with --server");
}

}  // namespace tenon::cli
