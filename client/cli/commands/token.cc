// tenon token create
#include <chrono>

#include <fmt/format.h>

#include "client/cli/commands/services.h"
#include "client/cli/files.h"
#include "client/security/tokens.h"

namespace tenon::cli {

Outcome CreateTokenCommand(Context& context, const TokenCreateOptions& options) {
  ASSIGN_OR_RETURN(const security::Roles roles, security::ParseRoles(options.roles));
  if (options.name.find_first_of(" \t\r\n#") != std::string::npos || options.name.empty()) {
    return base::InvalidArgument(
        fmt::format("'{}' cannot name a token: leave out spaces and #", options.name));
  }
  StatusOr<std::string> text = ReadText(options.file);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  std::string lines = text.ok() ? *std::move(text) : "# NAME SHA256 ROLES EXPIRY\n";
  ASSIGN_OR_RETURN(const security::TokenTable table,
                   security::TokenTable::Parse(lines, options.file));
  for (const security::Token& token : table.tokens()) {
    if (token.name != options.name) continue;
    return base::FailedPrecondition(
        fmt::format("{} has a token '{}'; remove its line first, or give another --name",
                    options.file, options.name));
  }
  const std::string secret = security::NewSecret();
  security::Token token{.name = options.name, .sha256 = security::HashOf(secret), .roles = roles};
  if (options.days > 0) {
    token.expires = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count() +
                    static_cast<std::int64_t>(options.days) * 86'400;
  }
  if (!lines.empty() && !lines.ends_with('\n')) lines += '\n';
  RETURN_IF_ERROR(WriteText(options.file, lines + security::ToLine(token)));
  context.console.Print(secret);
  context.console.Log("token created", {{"name", token.name}, {"roles", options.roles}});
  return ExitCode::kDone;
}

}  // namespace tenon::cli
