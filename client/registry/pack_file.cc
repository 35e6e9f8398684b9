#include "client/registry/pack_file.h"

#include <fmt/core.h>

#include "client/registry/file.h"
#include "client/registry/sha256.h"
#include "core/base/bytes.h"

namespace tenon::registry {
namespace {

constexpr std::string_view kMagic = "TENONPK1";
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSignatureBytes = 64;

std::string_view View(const Digest& d) {
  return {reinterpret_cast<const char*>(d.data()), d.size()};
}

std::string SignedText(const std::string& address, const std::string& reference) {
  return fmt::format("tenon pack signature 1\n{}\n{}\n", address, reference);
}

}  // namespace

std::string PackFile::reference() const { return name + "@" + pack::ToString(version); }

StatusOr<std::string> AddressOf(const pack::Content& content) {
  ASSIGN_OR_RETURN(const std::string bytes, pack::EncodeContent(content));
  return ToHex(Sha256(bytes));
}

StatusOr<std::string> EncodePackFile(const PackFile& file, const SigningKey* key) {
  if (!pack::IsPackName(file.name)) {
    return base::InvalidArgument(fmt::format(
        "'{}' is no name for a pack; use a-z, 0-9, _ and -, a letter first", file.name));
  }
  ASSIGN_OR_RETURN(const std::string content, pack::EncodeContent(file.content));
  std::string out(kMagic);
  base::PutString(out, file.name);
  base::PutString(out, pack::ToString(file.version));
  base::PutString(out, content);
  base::PutString(out, pack::EncodeProvenance(file.provenance));
  base::PutByte(out, key == nullptr ? 0 : 1);
  if (key != nullptr) {
    out += key->public_key();
    out += key->Sign(SignedText(ToHex(Sha256(content)), file.reference()));
  }
  out += View(Sha256(out));
  if (out.size() > kPackBytesMax) {
    return base::InvalidArgument(
        fmt::format("the pack would have {} bytes, the limit is {}", out.size(), kPackBytesMax));
  }
  return out;
}

StatusOr<PackFile> DecodePackFile(std::string_view bytes) {
  if (bytes.size() > kPackBytesMax) return base::DataLoss("it is too long for a pack");
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return base::DataLoss(bytes.substr(0, 7) == kMagic.substr(0, 7)
                              ? "its format is of another version; it needs another tenon"
                              : "it is not a pack");
  }
  if (bytes.size() < kMagic.size() + kDigestBytes) return base::DataLoss("it is cut off");
  const std::string_view body = bytes.substr(0, bytes.size() - kDigestBytes);
  if (View(Sha256(body)) != bytes.substr(body.size())) {
    return base::DataLoss(
        "its checksum is wrong: it is cut off or damaged; fetch or make it again");
  }
  base::ByteReader in(body.substr(kMagic.size()));
  PackFile out;
  out.name = std::string(in.String());
  const std::string version(in.String());
  const std::string_view content = in.String();
  const std::string_view provenance = in.String();
  const std::uint8_t signatures = in.Byte();
  if (signatures > 1) in.Fail("it has more than one signature");
  const std::string key(in.Bytes(signatures * kKeyBytes));
  const std::string_view signature = in.Bytes(signatures * kSignatureBytes);
  in.End();
  if (!in.ok()) return base::DataLoss(in.error());
  if (!pack::IsPackName(out.name)) return base::DataLoss("its name is malformed");
  const auto parsed = pack::ParseVersion(version);
  if (!parsed.ok()) return base::DataLoss(base::Message(parsed.status()));
  out.version = *parsed;
  out.address = ToHex(Sha256(content));
  if (signatures == 1) {
    if (!Verify(SignedText(out.address, out.reference()), signature, key)) {
      return base::DataLoss("its signature is wrong: somebody changed it; do not use it");
    }
    out.signer = key;
  }
  ASSIGN_OR_RETURN(out.content, pack::DecodeContent(content));
  ASSIGN_OR_RETURN(out.provenance, pack::DecodeProvenance(provenance));
  return out;
}

Status CheckPolicy(const PackFile& pack, const PackPolicy& policy) {
  if (policy.require_signature && !pack.signer) {
    return base::FailedPrecondition("it is not signed; sign it with `tenon pack sign`");
  }
  if (policy.signer && pack.signer != policy.signer) {
    return base::FailedPrecondition(fmt::format("it is not signed by {}", ToHex(*policy.signer)));
  }
  return OkStatus();
}

StatusOr<PackFile> ReadPackFile(const std::string& path, const PackPolicy& policy) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kPackBytesMax));
  auto file = DecodePackFile(bytes);
  if (!file.ok()) return base::Annotate(file.status(), "pack " + path);
  RETURN_IF_ERROR(base::Annotate(CheckPolicy(*file, policy), "pack " + path));
  return file;
}

Status WritePackFile(const std::string& path, const PackFile& pack, const SigningKey* key) {
  ASSIGN_OR_RETURN(const std::string bytes, EncodePackFile(pack, key));
  return WriteFile(path, bytes);
}

}  // namespace tenon::registry
