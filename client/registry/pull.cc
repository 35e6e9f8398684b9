#include "client/registry/pull.h"

#include <fmt/core.h>

#include "client/registry/sha256.h"

namespace tenon::registry {
namespace {

// Against a registry, or somebody in its place, that offers an old pack as the current one.
Status CheckVersion(const rpc::PackInfo& info, const PackCache& cache) {
  ASSIGN_OR_RETURN(const pack::Version offered, pack::ParseVersion(info.version));
  const std::optional<pack::Version> seen = cache.Newest(info.name);
  if (!seen || *seen <= offered) return OkStatus();
  return base::FailedPrecondition(fmt::format(
      "{0}: version {1} was seen here before, and the registry offers {2}; to go back, ask for "
      "{0}@{2} or add --allow-rollback",
      info.name, pack::ToString(*seen), info.version));
}

}  // namespace

StatusOr<PulledPack> Pull(const rpc::RegistryClient& client, PackCache& cache,
                          const std::string& reference, const PullOptions& options,
                          std::stop_token stop) {
  const std::size_t at = reference.find('@');
  rpc::RegistryClient::Wanted wanted{.name = reference.substr(0, at)};
  if (!pack::IsPackName(wanted.name)) {
    return base::InvalidArgument(
        fmt::format("'{}' is no pack; write NAME, NAME@VERSION or NAME@CHANNEL", reference));
  }
  if (at != std::string::npos) {
    const std::string rest = reference.substr(at + 1);
    (pack::ParseVersion(rest).ok() ? wanted.version : wanted.channel) = rest;
  }
  const auto accept = [&](const rpc::PackInfo& info) -> Status {
    if (info.name != wanted.name || (!wanted.version.empty() && info.version != wanted.version)) {
      return base::DataLoss(fmt::format("asked for {}, and the registry answers with {}@{}",
                                        reference, info.name, info.version));
    }
    if (!wanted.version.empty() || options.allow_rollback) return OkStatus();
    return CheckVersion(info, cache);
  };
  ASSIGN_OR_RETURN(rpc::RegistryClient::Pulled pulled,
                   client.Pull(wanted, kPackBytesMax, accept, std::move(stop)));
  const std::string named = fmt::format("{}@{}", pulled.info.name, pulled.info.version);
  if (ToHex(Sha256(pulled.file)) != pulled.info.file_sha256) {
    return base::DataLoss(named + ": the bytes are not those that the registry announced");
  }
  auto pack = DecodePackFile(pulled.file);
  if (!pack.ok()) return base::Annotate(pack.status(), named);
  if (pack->reference() != named) {
    return base::DataLoss(
        fmt::format("{}: the pack inside says that it is {}", named, pack->reference()));
  }
  if (!pack->signer) {
    return base::FailedPrecondition(named + ": it is not signed; nobody stands up for it");
  }
  if (options.signer && pack->signer != options.signer) {
    return base::FailedPrecondition(fmt::format("{}: it is signed by {}, not by {}", named,
                                                ToHex(*pack->signer), ToHex(*options.signer)));
  }
  RETURN_IF_ERROR(cache.Put(pulled.file).status());
  return PulledPack{*std::move(pack), std::move(pulled.file)};
}

}  // namespace tenon::registry
