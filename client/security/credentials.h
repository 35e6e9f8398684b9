// The credentials of a server: TLS, the certificates of callers, tokens and their roles.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/security/tokens.h"
#include "core/base/status.h"

namespace grpc {
class ServerCredentials;
class ServerContextBase;
}  // namespace grpc

namespace tenon::security {

struct ServerSecurity {
  // PEM texts, not paths. Both empty: no TLS.
  std::string certificate;
  std::string key;
  // Callers must show a certificate that this one signed; empty: they need none.
  std::string client_root;
  // Called for each call, so that the file may be read again; from several threads. Null: no tokens
  // are asked for.
  std::function<std::shared_ptr<const TokenTable>()> tokens;
};

// Null when everything is open. Tokens without TLS are for callers on the same machine: others are
// turned away, since their token could be read on the way. InvalidArgument: a certificate without a
// key or the other way round.
StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security);

// The name of the token that a call came with; empty: none was asked for.
std::string CallerOf(const grpc::ServerContextBase& context);

}  // namespace tenon::security
