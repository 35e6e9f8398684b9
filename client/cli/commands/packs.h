// Packs by path or by name@version.
#pragma once

#include <string>

#include "client/registry/pack_file.h"
#include "core/base/status.h"

namespace tenon::cli {

// Whether `reference` is a path: it has a slash, ends in ".pack", or is there.
bool IsPackPath(const std::string& reference);

// Whether `reference` means the pack that is part of tenon.
bool IsDefaultPack(const std::string& reference);

// The file of a pack: `reference` itself when it is a path, else the pack of that name, or
// NAME@VERSION, in the cache. NotFound; InvalidArgument: the default pack, which
// is no file.
StatusOr<std::string> FindPack(const std::string& reference);

// Found, read and checked; unsigned packs are accepted if `policy` says so.
StatusOr<registry::PackFile> OpenPack(const std::string& reference,
                                      const registry::PackPolicy& policy = {});

// What a --name argument says: NAME or NAME@VERSION; the version is 0.1.0 unless it is given.
// InvalidArgument.
Status ParsePackReference(const std::string& text, registry::PackFile& pack);

// The public key of a --key argument: 64 hexadecimal digits, or a file that holds them.
StatusOr<registry::PublicKey> ReadPublicKey(const std::string& text_or_path);

// The secret key to sign with: of this file, or of the user's own, which is made on first use.
StatusOr<registry::SigningKey> ReadSigningKey(const std::string& path);

}  // namespace tenon::cli
