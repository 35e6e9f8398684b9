#include "client/registry/artifact.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/registry/sha256.h"

namespace tenon::registry {

StatusOr<std::string> GetArtifact(const rpc::StoreClient& store, std::uint64_t table,
                                  const std::string& name, std::uint64_t bytes,
                                  const std::string& sha256, std::stop_token stop) {
  ASSIGN_OR_RETURN(
      std::string found,
      store.GetArtifact(table, name, std::max<std::uint64_t>(bytes, 1), std::move(stop)));
  if (ToHex(Sha256(found)) == sha256) return found;
  return base::DataLoss(
      fmt::format("{}: artifact '{}' is not what its collector wrote", store.endpoint(), name));
}

}  // namespace tenon::registry
