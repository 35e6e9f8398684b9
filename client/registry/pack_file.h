// Pack files: the envelope around a pack's content, its address and its signature. Format:
// docs/formats/pack.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/registry/keys.h"
#include "core/base/status.h"
#include "core/pack/pack.h"

namespace tenon::registry {

inline constexpr std::uint64_t kPackBytesMax = std::uint64_t{64} << 20;

// A value type.
struct PackFile {
  std::string name;
  pack::Version version;
  pack::Content content;
  pack::Provenance provenance;
  // What follows is set by reading, and ignored by writing.
  std::string address;              // SHA-256 of the content, hexadecimal.
  std::optional<PublicKey> signer;  // Whose signature is right; nothing: unsigned.
  std::string reference() const;    // "name@1.0.0"
};

// The bytes of a pack file, signed by `key` if there is one. InvalidArgument: a bad name, or as
// pack::EncodeContent.
StatusOr<std::string> EncodePackFile(const PackFile& pack, const SigningKey* key);

// Reads foreign bytes and checks everything: length, checksum, signature, content. DataLoss says
// what is wrong; FailedPrecondition: of another version of the semantics.
StatusOr<PackFile> DecodePackFile(std::string_view bytes);

struct PackPolicy {
  bool require_signature = true;
  std::optional<PublicKey> signer = std::nullopt;  // If set, nobody else's.
};
// FailedPrecondition: unsigned, or of another signer, where that is not allowed.
Status CheckPolicy(const PackFile& pack, const PackPolicy& policy);
// Reads and checks a file. Errors name it: NotFound, InvalidArgument (unreadable), DataLoss
// (damaged), FailedPrecondition (other semantics, unsigned, another signer).
StatusOr<PackFile> ReadPackFile(const std::string& path, const PackPolicy& policy = {});

// Writes all of it or nothing.
Status WritePackFile(const std::string& path, const PackFile& pack, const SigningKey* key);

// The address of a content, as packs are named by it: 64 hexadecimal digits.
StatusOr<std::string> AddressOf(const pack::Content& content);

}  // namespace tenon::registry
