// Tokens: who may call what. A token is a secret text that a caller shows; a service keeps only its
// SHA-256, in a file of one line a token (docs/formats/tokens.md):
//
//   NAME  SHA256  ROLE[,ROLE..]  EXPIRY        # EXPIRY: seconds since 1970-01-01 UTC, or "never"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::security {

// Bits, so that a token may have several.
enum class Role : std::uint8_t {
  kRead = 1,     // See jobs, packs, statistics.
  kSubmit = 2,   // Make and control jobs; includes read.
  kPublish = 4,  // Push packs, move channels; includes read.
  kNode = 8,     // Be a worker, a verifier or a store; includes read.
};
using Roles = std::uint8_t;

// "read,submit" -> bits, with what they include. InvalidArgument names the roles there are.
StatusOr<Roles> ParseRoles(std::string_view text);
std::string ToString(Roles roles);

// What a call needs. `path` is that of gRPC: "/tenon.v1.JobService/SubmitJob".
struct Need {
  bool open = false;  // Anybody may call it: health checks.
  Roles any_of = 0;   // Otherwise one of these; 0: no such method.
};
Need NeedOf(std::string_view path);

// A value type.
struct Token {
  std::string name;
  std::string sha256;  // Of the secret, hexadecimal.
  Roles roles = 0;
  std::optional<std::int64_t> expires;  // Seconds since 1970-01-01 UTC.
};

// Immutable and thread-safe.
class TokenTable {
 public:
  TokenTable() = default;
  explicit TokenTable(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  // InvalidArgument names `path` and the line.
  static StatusOr<TokenTable> Parse(std::string_view text, const std::string& path);

  // Judges a call by its "authorization" header (empty: none). UNAUTHENTICATED: none, an unknown or
  // an expired one; PERMISSION_DENIED: its roles do not include what the call needs.
  Status Check(std::string_view authorization, std::string_view path,
               std::int64_t now_seconds) const;
  // Whose token an "authorization" header shows; empty: nobody's.
  std::string NameOf(std::string_view authorization) const;
  const std::vector<Token>& tokens() const { return tokens_; }

 private:
  const Token* Find(std::string_view authorization) const;

  std::vector<Token> tokens_;
};

// A line of the file, with a line break.
std::string ToLine(const Token& token);
// 256 random bits as text: "tenon_" and hexadecimal digits.
std::string NewSecret();
std::string HashOf(std::string_view secret);

}  // namespace tenon::security
