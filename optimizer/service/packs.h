// PackSource: the packs that a node optimizes with, from files and from a registry, looked at again
// now and then.
//
// A pack that cannot be had, or is not what it should be (damaged, unsigned, signed by somebody
// else, of other semantics, older than the one in use, the same version with other content), never
// takes the place of a good one: that one stays, and is called stale. What came from a registry is
// kept in a folder, so that a node starts with what it had while the registry is away.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/registry/cache.h"
#include "client/registry/pack_file.h"
#include "client/rpc/registry_client.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon::optimizer {

// Immutable, shared by all calls that use it.
struct ServedPack {
  std::string name;
  pack::Version version;
  std::string address;  // Of its content.
  std::string file;     // The bytes of the pack file.
};
std::string ReferenceOf(const ServedPack& pack);  // "name@1.0.0"
using ServedPacks = std::vector<std::shared_ptr<const ServedPack>>;

struct PackOrigin {
  std::string reference;        // A path, or NAME, NAME@VERSION or NAME@CHANNEL.
  bool from_registry = false;   // Else from a file, wherever `find` says that it lies.
  std::string_view bytes = {};  // If any, those of the pack file; they stay. Then of nowhere else.
};

struct PackSourceOptions {
  std::vector<PackOrigin> origins;  // In the order in which their rules are tried.
  std::function<StatusOr<std::string>(const std::string& reference)> find;
  std::shared_ptr<rpc::Connection> registry;  // Null if nothing comes from there.
  std::string folder;                         // For what comes from it.
  std::optional<registry::PublicKey> signer;  // If set, nobody else's packs.
  // "pack_taken", "pack_refused"; thread-safe, may be null.
  std::function<void(std::string_view event, std::string_view reference, std::string_view detail)>
      log;
};

struct PackFigures {
  int served = 0;   // References with a good pack.
  int stale = 0;    // Of these, those that could not be refreshed when it was last tried.
  int missing = 0;  // References of which no good pack ever came.
};

// Thread-safe; one thread refreshes.
class PackSource {
 public:
  // Starts with what the folder has of a registry's packs.
  explicit PackSource(PackSourceOptions options);

  // Looks at all references. The first error there was, for the log of a start: what can be had is
  // served all the same.
  Status Refresh(std::stop_token stop = {});

  // Those that a call names, by NAME or NAME@VERSION, in its order; none: all of them. NotFound:
  // the node has no such reference. Unavailable, PACK_MISSING: it has, but no good pack yet.
  StatusOr<ServedPacks> Select(std::span<const std::string> names) const;
  PackFigures figures() const;

 private:
  struct Slot {
    PackOrigin origin;
    std::shared_ptr<const ServedPack> pack;  // The last good one; null: none yet.
    bool stale = false;
  };
  StatusOr<ServedPack> FromFile(const PackOrigin& origin) const;
  StatusOr<ServedPack> FromRegistry(const std::string& reference, std::stop_token stop);
  StatusOr<ServedPack> Kept(const std::string& reference) const;
  Status Keep(const std::string& reference, const ServedPack& pack) const;
  std::string KeptPath(const std::string& reference) const;

  const PackSourceOptions options_;
  registry::PackCache cache_;
  mutable base::Mutex mutex_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tenon::optimizer
