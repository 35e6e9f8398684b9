#include "client/security/credentials.h"

#include <chrono>

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include "proto/convert/status.h"

namespace tenon::security {
namespace {

constexpr const char* kCaller = "tenon_caller";

class TokenCheck final : public grpc::AuthMetadataProcessor {
 public:
  explicit TokenCheck(std::function<std::shared_ptr<const TokenTable>()> tokens)
      : tokens_(std::move(tokens)) {}

  bool IsBlocking() const override { return false; }  // A hash and a short list.

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* call,
                       OutputMetadata* consumed, OutputMetadata*) override {
    const auto value = [&](const char* name) -> std::string {
      const auto found = metadata.find(name);
      if (found == metadata.end()) return "";
      return {found->second.data(), found->second.size()};
    };
    const std::string authorization = value("authorization");
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::system_clock::now().time_since_epoch());
    const std::shared_ptr<const TokenTable> tokens = tokens_();
    const Status status = tokens->Check(authorization, value(":path"), now.count());
    if (status.ok()) call->AddProperty(kCaller, tokens->NameOf(authorization));
    // The secret goes no further than this.
    if (!authorization.empty()) consumed->insert({"authorization", authorization});
    return convert::ToGrpc(status);
  }

 private:
  std::function<std::shared_ptr<const TokenTable>()> tokens_;
};

}  // namespace

StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security) {
  if (security.certificate.empty() != security.key.empty()) {
    return base::InvalidArgument("TLS needs both a certificate and its key");
  }
  if (security.certificate.empty() && !security.client_root.empty()) {
    return base::InvalidArgument("certificates of callers need TLS: give a certificate and a key");
  }
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (!security.certificate.empty()) {
    grpc::SslServerCredentialsOptions options(
        security.client_root.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                     : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = security.client_root;
    options.pem_key_cert_pairs.push_back({security.key, security.certificate});
    credentials = grpc::SslServerCredentials(options);
  } else if (security.tokens) {
    // Unlike those that are simply open, they can check tokens; they refuse other machines.
    credentials = grpc::experimental::LocalServerCredentials(LOCAL_TCP);
  } else {
    return std::shared_ptr<grpc::ServerCredentials>();
  }
  if (security.tokens) {
    credentials->SetAuthMetadataProcessor(std::make_shared<TokenCheck>(security.tokens));
  }
  return credentials;
}

std::string CallerOf(const grpc::ServerContextBase& context) {
  const auto values = context.auth_context()->FindPropertyValues(kCaller);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

}  // namespace tenon::security
