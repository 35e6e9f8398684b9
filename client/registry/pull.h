// From a registry into the cache: what a registry is not trusted with.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "client/registry/cache.h"
#include "client/registry/pack_file.h"
#include "client/rpc/registry_client.h"

namespace tenon::registry {

struct PullOptions {
  std::optional<PublicKey> signer;  // If set, nobody else's packs.
  // Take a version below the newest one that was seen here. A version that is asked for by number
  // is taken without.
  bool allow_rollback = false;
};

struct PulledPack {
  PackFile pack;
  std::string file;  // Its bytes.
};

// Fetches NAME, NAME@VERSION or NAME@CHANNEL and keeps it in `cache`. FailedPrecondition: unsigned,
// signed by somebody else, of other semantics, older than what was seen here, or known here with
// other content. DataLoss: it is not what it claims to be. Errors of RegistryClient and PackCache.
StatusOr<PulledPack> Pull(const rpc::RegistryClient& client, PackCache& cache,
                          const std::string& reference, const PullOptions& options,
                          std::stop_token stop = {});

}  // namespace tenon::registry
