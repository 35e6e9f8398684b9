#include "optimizer/service/packs.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/registry/file.h"
#include "client/registry/pull.h"
#include "client/registry/sha256.h"
#include "proto/convert/status.h"

namespace tenon::optimizer {
namespace {

constexpr std::uint64_t kSmallFileMax = 4096;

ServedPack Served(const registry::PackFile& pack, std::string file) {
  return {pack.name, pack.version, pack.address, std::move(file)};
}

// Whether `found` may take the place of `now`.
Status Replaces(const ServedPack& found, const ServedPack& now) {
  if (found.name != now.name) return OkStatus();  // A file that holds another pack now.
  if (found.version < now.version) {
    return base::FailedPrecondition(
        fmt::format("{} is older than {}, which is in use; restart the node to go back",
                    ReferenceOf(found), ReferenceOf(now)));
  }
  if (found.version == now.version && found.address != now.address) {
    return base::FailedPrecondition(fmt::format(
        "{} has other content than before; a version never changes", ReferenceOf(found)));
  }
  return OkStatus();
}

Status CheckSigner(const registry::PackFile& pack, const PackSourceOptions& options) {
  if (!pack.signer) {
    return base::FailedPrecondition("it is not signed; nobody stands up for it");
  }
  if (options.signer && *pack.signer != *options.signer) {
    return base::FailedPrecondition(fmt::format("it is signed by {}, not by {}",
                                                registry::ToHex(*pack.signer),
                                                registry::ToHex(*options.signer)));
  }
  return OkStatus();
}

StatusOr<ServedPack> FromBytes(std::string bytes, const std::string& path,
                               const PackSourceOptions& options) {
  const auto pack = registry::DecodePackFile(bytes);
  if (!pack.ok()) return base::Annotate(pack.status(), path);
  if (const Status s = CheckSigner(*pack, options); !s.ok()) return base::Annotate(s, path);
  return Served(*pack, std::move(bytes));
}

StatusOr<ServedPack> ReadServed(const std::string& path, const PackSourceOptions& options) {
  ASSIGN_OR_RETURN(std::string bytes, registry::ReadFile(path, registry::kPackBytesMax));
  return FromBytes(std::move(bytes), path, options);
}

}  // namespace

std::string ReferenceOf(const ServedPack& pack) {
  return fmt::format("{}@{}", pack.name, pack::ToString(pack.version));
}

PackSource::PackSource(PackSourceOptions options)
    : options_(std::move(options)), cache_(options_.folder + "/files") {
  const base::MutexLock lock(mutex_);
  for (const PackOrigin& origin : options_.origins) {
    Slot slot{.origin = origin};
    if (origin.from_registry) {
      if (auto kept = Kept(origin.reference); kept.ok()) {
        slot.pack = std::make_shared<const ServedPack>(*std::move(kept));
        slot.stale = true;  // Until the registry has been asked.
      }
    }
    slots_.push_back(std::move(slot));
  }
}

std::string PackSource::KeptPath(const std::string& reference) const {
  return fmt::format("{}/last.{}", options_.folder,
                     registry::ToHex(registry::Sha256(reference)).substr(0, 32));
}

// A line: NAME@VERSION ADDRESS.
StatusOr<ServedPack> PackSource::Kept(const std::string& reference) const {
  ASSIGN_OR_RETURN(const std::string line, registry::ReadFile(KeptPath(reference), kSmallFileMax));
  const std::size_t space = line.find(' ');
  ASSIGN_OR_RETURN(const std::string path, cache_.Find(line.substr(0, space)));
  ASSIGN_OR_RETURN(ServedPack pack, ReadServed(path, options_));
  if (space == std::string::npos || line.substr(space + 1) != pack.address + "\n") {
    return base::DataLoss(fmt::format("{}: it is another pack than was kept", path));
  }
  return pack;
}

Status PackSource::Keep(const std::string& reference, const ServedPack& pack) const {
  return registry::WriteFile(KeptPath(reference),
                             fmt::format("{} {}\n", ReferenceOf(pack), pack.address));
}

StatusOr<ServedPack> PackSource::FromFile(const PackOrigin& origin) const {
  if (!origin.bytes.empty()) {
    return FromBytes(std::string(origin.bytes), "pack " + origin.reference, options_);
  }
  ASSIGN_OR_RETURN(const std::string path, options_.find(origin.reference));
  return ReadServed(path, options_);
}

StatusOr<ServedPack> PackSource::FromRegistry(const std::string& reference, std::stop_token stop) {
  const rpc::RegistryClient client(options_.registry);
  ASSIGN_OR_RETURN(
      registry::PulledPack pulled,
      registry::Pull(client, cache_, reference, {.signer = options_.signer}, std::move(stop)));
  ServedPack pack = Served(pulled.pack, std::move(pulled.file));
  RETURN_IF_ERROR(Keep(reference, pack));
  return pack;
}

Status PackSource::Refresh(std::stop_token stop) {
  Status first;
  for (std::size_t k = 0; k < options_.origins.size(); ++k) {
    const PackOrigin& origin = options_.origins[k];
    const std::string& reference = origin.reference;
    std::shared_ptr<const ServedPack> now;
    {
      const base::MutexLock lock(mutex_);
      now = slots_[k].pack;
    }
    StatusOr<ServedPack> found =
        origin.from_registry ? FromRegistry(reference, stop) : FromFile(origin);
    if (stop.stop_requested()) return absl::CancelledError("the node stops");
    Status status = found.status();
    if (status.ok() && now != nullptr) status = Replaces(*found, *now);
    const bool fresh = status.ok() && (now == nullptr || now->address != found->address ||
                                       ReferenceOf(*now) != ReferenceOf(*found));
    if (fresh && options_.log) {
      options_.log("pack_taken", reference, ReferenceOf(*found) + " " + found->address);
    }
    if (!status.ok() && options_.log) {
      options_.log("pack_refused", reference, base::Message(status));
    }
    if (first.ok()) first = base::Annotate(status, reference);
    const base::MutexLock lock(mutex_);
    slots_[k].stale = !status.ok();
    if (fresh) slots_[k].pack = std::make_shared<const ServedPack>(*std::move(found));
  }
  return first;
}

StatusOr<ServedPacks> PackSource::Select(std::span<const std::string> names) const {
  const base::MutexLock lock(mutex_);
  ServedPacks out;
  const auto take = [&](const Slot& slot) -> Status {
    if (slot.pack == nullptr) {
      return convert::WithDetails(
          base::Unavailable(fmt::format("the pack {} has not come yet", slot.origin.reference)),
          {.reason = "PACK_MISSING", .metadata = {{"pack", slot.origin.reference}}});
    }
    out.push_back(slot.pack);
    return OkStatus();
  };
  if (names.empty()) {
    for (const Slot& slot : slots_) RETURN_IF_ERROR(take(slot));
    return out;
  }
  for (const std::string& name : names) {
    const auto is_named = [&](const Slot& slot) {
      if (slot.pack == nullptr)
        return slot.origin.reference.substr(0, slot.origin.reference.find('@')) == name;
      return slot.pack->name == name || ReferenceOf(*slot.pack) == name;
    };
    const auto slot = std::ranges::find_if(slots_, is_named);
    if (slot == slots_.end()) {
      std::string there;
      for (const Slot& s : slots_) there += (there.empty() ? "" : ", ") + s.origin.reference;
      return base::NotFound(fmt::format("this server does not use the pack {}; it uses: {}", name,
                                        there.empty() ? "none" : there));
    }
    RETURN_IF_ERROR(take(*slot));
  }
  return out;
}

PackFigures PackSource::figures() const {
  const base::MutexLock lock(mutex_);
  PackFigures out;
  for (const Slot& slot : slots_) {
    ++(slot.pack == nullptr ? out.missing : out.served);
    if (slot.pack != nullptr && slot.stale) ++out.stale;
  }
  return out;
}

}  // namespace tenon::optimizer
