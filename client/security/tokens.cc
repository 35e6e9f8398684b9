#include "client/security/tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <sstream>

#include <fmt/core.h>

#include "client/registry/sha256.h"

namespace tenon::security {
namespace {

constexpr std::string_view kBearer = "Bearer ";

constexpr Roles Bit(Role role) { return static_cast<Roles>(role); }

struct NamedRole {
  std::string_view name;
  Roles bit;
  Roles includes;
};
constexpr std::array<NamedRole, 4> kRoles{
    {{"read", Bit(Role::kRead), Bit(Role::kRead)},
     {"submit", Bit(Role::kSubmit), Bit(Role::kSubmit) | Bit(Role::kRead)},
     {"publish", Bit(Role::kPublish), Bit(Role::kPublish) | Bit(Role::kRead)},
     {"node", Bit(Role::kNode), Bit(Role::kNode) | Bit(Role::kRead)}}};

// The roles that proto/tenon/v1 gives to calls; the first line that fits counts.
struct MethodRole {
  std::string_view path;  // A prefix when it ends in '/'.
  Role role;
};
constexpr MethodRole kMethods[] = {
    {"/tenon.v1.JobService/SubmitJob", Role::kSubmit},
    {"/tenon.v1.JobService/ControlJob", Role::kSubmit},
    {"/tenon.v1.JobService/", Role::kRead},
    {"/tenon.v1.WorkService/", Role::kNode},
    {"/tenon.v1.StoreService/Stats", Role::kRead},
    {"/tenon.v1.StoreService/Verify", Role::kRead},
    {"/tenon.v1.StoreService/", Role::kNode},
    {"/tenon.v1.RegistryService/PushPack", Role::kPublish},
    {"/tenon.v1.RegistryService/SetChannel", Role::kPublish},
    {"/tenon.v1.RegistryService/", Role::kRead},
    {"/tenon.v1.OptimizeService/", Role::kRead},
    {"/grpc.reflection.v1alpha.ServerReflection/", Role::kRead},
};

Status Bad(const std::string& path, int line, std::string_view what) {
  return base::InvalidArgument(fmt::format("{}:{}: {}", path, line, what));
}

}  // namespace

StatusOr<Roles> ParseRoles(std::string_view text) {
  Roles roles = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    const auto found =
        std::find_if(kRoles.begin(), kRoles.end(), [&](const auto& r) { return r.name == name; });
    if (found == kRoles.end()) {
      return base::InvalidArgument(
          fmt::format("'{}' is no role; the roles are read, submit, publish and node", name));
    }
    roles = static_cast<Roles>(roles | found->includes);
    if (comma == std::string_view::npos) return roles;
    text.remove_prefix(comma + 1);
  }
}

std::string ToString(Roles roles) {
  std::string text;
  for (const NamedRole& role : kRoles) {
    if ((roles & role.bit) != 0) text += fmt::format("{}{}", text.empty() ? "" : ",", role.name);
  }
  return text;
}

Need NeedOf(std::string_view path) {
  if (path.starts_with("/grpc.health.v1.Health/")) return {.open = true};
  for (const MethodRole& method : kMethods) {
    const bool prefix = method.path.ends_with('/');
    if (prefix ? path.starts_with(method.path) : path == method.path) {
      return {.any_of = Bit(method.role)};
    }
  }
  return {};
}

StatusOr<TokenTable> TokenTable::Parse(std::string_view text, const std::string& path) {
  std::vector<Token> tokens;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, hash, roles, expiry, more;
    if (!(words >> name)) continue;
    if (!(words >> hash >> roles >> expiry) || words >> more) {
      return Bad(path, number, "write NAME SHA256 ROLES EXPIRY, as `tenon token create` does");
    }
    if (hash.size() != 64 || !registry::FromHex(hash)) {
      return Bad(path, number, "the hash must be 64 lower-case hexadecimal digits");
    }
    const StatusOr<Roles> parsed = ParseRoles(roles);
    if (!parsed.ok()) return Bad(path, number, base::Message(parsed.status()));
    std::optional<std::int64_t> expires;
    if (expiry != "never") {
      std::int64_t seconds = 0;
      const auto [end, error] =
          std::from_chars(expiry.data(), expiry.data() + expiry.size(), seconds);
      if (error != std::errc() || end != expiry.data() + expiry.size() || seconds < 0) {
        return Bad(path, number, "the expiry must be seconds since 1970 or 'never'");
      }
      expires = seconds;
    }
    tokens.push_back({name, hash, *parsed, expires});
  }
  return TokenTable(std::move(tokens));
}

const Token* TokenTable::Find(std::string_view authorization) const {
  if (!authorization.starts_with(kBearer)) return nullptr;
  // Hashes are compared, so how long a comparison takes says nothing about a secret.
  const std::string hash = HashOf(authorization.substr(kBearer.size()));
  const auto found = std::find_if(tokens_.begin(), tokens_.end(),
                                  [&](const Token& t) { return t.sha256 == hash; });
  return found == tokens_.end() ? nullptr : &*found;
}

std::string TokenTable::NameOf(std::string_view authorization) const {
  const Token* const found = Find(authorization);
  return found == nullptr ? "" : found->name;
}

Status TokenTable::Check(std::string_view authorization, std::string_view path,
                         std::int64_t now_seconds) const {
  const Need need = NeedOf(path);
  if (need.open) return OkStatus();
  if (!authorization.starts_with(kBearer)) {
    return absl::UnauthenticatedError("this service wants a token; give one with --token");
  }
  const Token* const found = Find(authorization);
  if (found == nullptr) return absl::UnauthenticatedError("the token is not known here");
  if (found->expires && *found->expires <= now_seconds) {
    return absl::UnauthenticatedError(
        fmt::format("the token '{}' has expired; ask for a new one", found->name));
  }
  if ((found->roles & need.any_of) == 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} needs the role {}, and the token '{}' has {}", path,
                    need.any_of == 0 ? "of a method that there is not" : ToString(need.any_of),
                    found->name, ToString(found->roles)));
  }
  return OkStatus();
}

std::string ToLine(const Token& token) {
  return fmt::format("{} {} {} {}\n", token.name, token.sha256, ToString(token.roles),
                     token.expires ? std::to_string(*token.expires) : "never");
}

std::string NewSecret() {
  std::random_device device;
  std::string text = "tenon_";
  for (int k = 0; k < 8; ++k) text += fmt::format("{:08x}", device());
  return text;
}

std::string HashOf(std::string_view secret) { return registry::ToHex(registry::Sha256(secret)); }

}  // namespace tenon::security
