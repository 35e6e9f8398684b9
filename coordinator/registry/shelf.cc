#include "coordinator/registry/shelf.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "client/registry/pack_file.h"
#include "client/registry/sha256.h"
#include "core/base/bytes.h"

namespace tenon::coordinator {
namespace {

using store::Family;

constexpr std::uint8_t kEntryFormat = 1;

std::string Key(std::string_view kind, std::string_view name, std::string_view rest) {
  return fmt::format("{}/{}@{}", kind, name, rest);
}

std::string Encode(const ShelfEntry& e) {
  std::string out;
  base::PutByte(out, kEntryFormat);
  base::PutString(out, e.name);
  base::PutString(out, pack::ToString(e.version));
  base::PutString(out, e.address);
  base::PutVarint(out, e.size);
  base::PutString(out, e.file_sha256);
  base::PutString(out, e.signer);
  base::PutSigned(out, e.published_at_ms);
  base::PutVarint(out, e.rules);
  return out;
}

StatusOr<ShelfEntry> Decode(std::string_view key, std::string_view bytes) {
  base::ByteReader in(bytes);
  ShelfEntry e;
  if (in.Byte() != kEntryFormat) in.Fail("its format is of another version");
  e.name = std::string(in.String());
  const std::string version(in.String());
  e.address = std::string(in.String());
  e.size = in.Varint();
  e.file_sha256 = std::string(in.String());
  e.signer = std::string(in.String());
  e.published_at_ms = in.Signed();
  e.rules = in.Varint();
  in.End();
  const auto parsed = pack::ParseVersion(version);
  if (!in.ok() || !parsed.ok()) {
    return base::DataLoss(fmt::format("registry entry {}: {}", key,
                                      in.ok() ? base::Message(parsed.status()) : in.error()));
  }
  e.version = *parsed;
  return e;
}

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class ShelfSink : public PackSink {
 public:
  explicit ShelfSink(std::shared_ptr<PackShelf> shelf) : shelf_(std::move(shelf)) {}

  Status Publish(const std::string&, const std::string&, const std::string& file) override {
    return shelf_->Publish(file, NowMs(), /*signed_only=*/false).status();
  }
  StatusOr<bool> Has(const std::string& name, const std::string& version) const override {
    const auto found = shelf_->Find(name, {.version = version});
    if (absl::IsNotFound(found.status())) return false;
    if (!found.ok()) return found.status();
    return true;
  }

 private:
  std::shared_ptr<PackShelf> shelf_;
};

}  // namespace

bool IsChannelName(std::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

StatusOr<ShelfEntry> PackShelf::Publish(const std::string& file, std::int64_t now_ms,
                                        bool signed_only) {
  ASSIGN_OR_RETURN(const registry::PackFile pack, registry::DecodePackFile(file));
  if (signed_only && !pack.signer) {
    return base::FailedPrecondition(
        fmt::format("{} is not signed; sign it with `tenon pack sign`", pack.reference()));
  }
  if (const Status all = pack::RequireCertificates(pack.content); !all.ok()) {
    return base::Annotate(all, pack.reference());
  }
  ShelfEntry entry{.name = pack.name,
                   .version = pack.version,
                   .address = pack.address,
                   .size = file.size(),
                   .file_sha256 = registry::ToHex(registry::Sha256(file)),
                   .signer = pack.signer ? registry::ToHex(*pack.signer) : "",
                   .published_at_ms = now_ms,
                   .rules = pack::FamilyCount(pack.content)};
  const std::string version = pack::ToString(pack.version);
  const base::MutexLock lock(mutex_);
  const auto there = Find(entry.name, {.version = version});
  if (there.ok()) {
    if (there->file_sha256 == entry.file_sha256) return there;
    return absl::AlreadyExistsError(
        fmt::format("{} is published with other content ({}); a version never changes, give "
                    "another one",
                    pack.reference(), there->address));
  }
  if (!absl::IsNotFound(there.status())) return there.status();
  store::Batch batch;
  batch.Put(Family::kPacks, Key("file", entry.name, version), file);
  batch.Put(Family::kPacks, Key("entry", entry.name, version), Encode(entry));
  RETURN_IF_ERROR(journal_.Write(batch));
  return entry;
}

StatusOr<std::vector<ShelfEntry>> PackShelf::List(const std::string& name) const {
  std::vector<ShelfEntry> out;
  const std::string prefix = name.empty() ? "entry/" : Key("entry", name, "");
  RETURN_IF_ERROR(journal_.Scan(Family::kPacks, prefix,
                                [&](std::string_view key, std::string_view value) -> Status {
                                  ASSIGN_OR_RETURN(ShelfEntry entry, Decode(key, value));
                                  out.push_back(std::move(entry));
                                  return OkStatus();
                                }));
  // "channel/NAME@CHANNEL" holds a version.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> channels;
  RETURN_IF_ERROR(journal_.Scan(
      Family::kPacks, name.empty() ? "channel/" : Key("channel", name, ""),
      [&](std::string_view key, std::string_view value) {
        const std::size_t slash = key.find('/'), at = key.find('@');
        channels[{std::string(key.substr(slash + 1, at - slash - 1)), std::string(value)}]
            .emplace_back(key.substr(at + 1));
        return OkStatus();
      }));
  for (ShelfEntry& entry : out) {
    const auto found = channels.find({entry.name, pack::ToString(entry.version)});
    if (found != channels.end()) entry.channels = found->second;
  }
  std::sort(out.begin(), out.end(), [](const ShelfEntry& a, const ShelfEntry& b) {
    return std::tie(a.name, a.version) < std::tie(b.name, b.version);
  });
  return out;
}

StatusOr<ShelfEntry> PackShelf::Find(const std::string& name, const Which& which) const {
  if (!pack::IsPackName(name)) {
    return base::InvalidArgument(fmt::format("'{}' is no name of a pack", name));
  }
  ASSIGN_OR_RETURN(const std::vector<ShelfEntry> all, List(name));
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const ShelfEntry& e) {
    if (!which.channel.empty()) {
      return std::find(e.channels.begin(), e.channels.end(), which.channel) != e.channels.end();
    }
    return which.version.empty() || pack::ToString(e.version) == which.version;
  });
  if (found != all.rend()) return *found;
  return base::NotFound(
      fmt::format("the registry has no {}{}; `tenon pack list --server` shows what it has", name,
                  !which.channel.empty() ? fmt::format(" in channel '{}'", which.channel)
                                         : (which.version.empty() ? "" : "@" + which.version)));
}

StatusOr<std::string> PackShelf::Read(const ShelfEntry& entry) const {
  const std::string key = Key("file", entry.name, pack::ToString(entry.version));
  ASSIGN_OR_RETURN(auto bytes, journal_.Get(Family::kPacks, key));
  if (!bytes || registry::ToHex(registry::Sha256(*bytes)) != entry.file_sha256) {
    return base::DataLoss(
        fmt::format("registry {}: the file is not what was published; restore "
                    "the coordinator's data from a backup",
                    key));
  }
  return *std::move(bytes);
}

StatusOr<ShelfEntry> PackShelf::SetChannel(const std::string& name, const std::string& channel,
                                           const std::string& version) {
  if (!IsChannelName(channel)) {
    return base::InvalidArgument(
        fmt::format("'{}' is no channel: 1 to 32 of a-z, 0-9 and -", channel));
  }
  if (version.empty()) return base::InvalidArgument("name a version");
  const base::MutexLock lock(mutex_);
  RETURN_IF_ERROR(Find(name, {.version = version}).status());
  store::Batch batch;
  batch.Put(Family::kPacks, Key("channel", name, channel), version);
  RETURN_IF_ERROR(journal_.Write(batch));
  return Find(name, {.version = version});
}

std::unique_ptr<PackSink> MakeShelfSink(std::shared_ptr<PackShelf> shelf) {
  return std::make_unique<ShelfSink>(std::move(shelf));
}

}  // namespace tenon::coordinator
