// tenon pack push | pull | list --server
#include <fmt/format.h>

#include "client/cli/commands/packs.h"
#include "client/cli/commands/services.h"
#include "client/cli/files.h"
#include "client/registry/file.h"
#include "client/registry/pull.h"
#include "client/registry/sha256.h"
#include "client/rpc/registry_client.h"

namespace tenon::cli {
namespace {

StatusOr<rpc::RegistryClient> Client(const ConnectOptions& server) {
  ASSIGN_OR_RETURN(auto connection, Connect(server));
  return rpc::RegistryClient(std::move(connection));
}

Json InfoJson(const rpc::PackInfo& info) {
  Json channels = Json::Array();
  for (const std::string& channel : info.channels) channels.Append(channel);
  return Json::Object({{"name", info.name},
                       {"version", info.version},
                       {"address", info.address},
                       {"size", info.size},
                       {"file_sha256", info.file_sha256},
                       {"signer", info.signer},
                       {"published_at_ms", info.published_at_ms},
                       {"channels", std::move(channels)},
                       {"rules", info.rules}});
}

std::string Line(const rpc::PackInfo& info) {
  std::string channels;
  for (const std::string& channel : info.channels) channels += " " + channel;
  return fmt::format("{:<28} {:>5} rules  {}{}", info.name + "@" + info.version, info.rules,
                     info.address.substr(0, 12), channels);
}

}  // namespace

Outcome PushPackCommand(Context& context, const PackRemoteOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const registry::PackFile pack, OpenPack(options.pack));
  ASSIGN_OR_RETURN(const std::string path, FindPack(options.pack));
  ASSIGN_OR_RETURN(const std::string bytes, registry::ReadFile(path, registry::kPackBytesMax));
  ASSIGN_OR_RETURN(const rpc::RegistryClient client, Client(options.server));
  StatusOr<rpc::PackInfo> info =
      client.Push(bytes, registry::ToHex(registry::Sha256(bytes)), context.interrupt.token());
  if (info.ok() && !options.channel.empty()) {
    info = client.SetChannel(info->name, options.channel, info->version);
  }
  if (!info.ok()) return Explained(info.status());
  context.console.Print(Line(*info));
  RETURN_IF_ERROR(Deliver(InfoJson(*info), options.json, context.console));
  return ExitCode::kDone;
}

Outcome PullPackCommand(Context& context, const PackRemoteOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  if (!options.out.empty()) RETURN_IF_ERROR(CheckWritable(options.out));
  registry::PullOptions how{.signer = std::nullopt, .allow_rollback = options.rollback};
  if (!options.key.empty()) {
    ASSIGN_OR_RETURN(how.signer, ReadPublicKey(options.key));
  }
  ASSIGN_OR_RETURN(std::string folder, registry::PackCache::DefaultDirectory());
  registry::PackCache cache(std::move(folder));
  ASSIGN_OR_RETURN(const rpc::RegistryClient client, Client(options.server));
  const auto pulled = registry::Pull(client, cache, options.pack, how, context.interrupt.token());
  if (!pulled.ok()) return Explained(pulled.status());
  const registry::PackFile& pack = pulled->pack;
  if (!options.out.empty()) RETURN_IF_ERROR(registry::WriteFile(options.out, pulled->file));
  context.console.Print(fmt::format("{} is in {}, with {} rules", pack.reference(),
                                    options.out.empty() ? "the cache" : options.out,
                                    pack::FamilyCount(pack.content)));
  Json document = Json::Object({{"name", pack.name},
                                {"version", pack::ToString(pack.version)},
                                {"address", pack.address},
                                {"signer", registry::ToHex(*pack.signer)},
                                {"rules", pack::FamilyCount(pack.content)}});
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return ExitCode::kDone;
}

Outcome ListRemotePacksCommand(Context& context, const PackRemoteOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const rpc::RegistryClient client, Client(options.server));
  const auto packs = client.List("");
  if (!packs.ok()) return Explained(packs.status());
  Json document = Json::Array();
  for (const rpc::PackInfo& info : *packs) {
    context.console.Print(Line(info));
    document.Append(InfoJson(info));
  }
  if (packs->empty()) context.console.Print("the registry has no packs");
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
