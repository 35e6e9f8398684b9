// RegistryClient: packs of a registry. What it fetches is checked against what the registry says of
// it; signatures and versions are client/registry's (pull.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "client/rpc/connection.h"

namespace tenon::rpc {

// As PackInfo of registry.proto. A value type.
struct PackInfo {
  std::string name, version;
  std::string address;  // SHA-256 of the content, hexadecimal.
  std::uint64_t size = 0;
  std::string file_sha256;
  std::string signer;  // Hexadecimal; empty: unsigned.
  std::int64_t published_at_ms = 0;
  std::vector<std::string> channels;
  std::uint32_t rules = 0;
};

// Errors: registry.proto; UNAVAILABLE when the registry cannot be reached. Thread-safe.
class RegistryClient {
 public:
  explicit RegistryClient(std::shared_ptr<Connection> connection);

  // Publishes the bytes of a pack file, durably. `file_sha256`: of them, hexadecimal.
  StatusOr<PackInfo> Push(const std::string& file, const std::string& file_sha256,
                          std::stop_token stop = {}) const;
  // By name, then version; an empty name: all.
  StatusOr<std::vector<PackInfo>> List(const std::string& name) const;
  StatusOr<PackInfo> SetChannel(const std::string& name, const std::string& channel,
                                const std::string& version) const;

  struct Wanted {
    std::string name;
    std::string version, channel;  // At most one of them; none: the highest version.
  };
  struct Pulled {
    PackInfo info;
    std::string file;  // As many bytes as `info` says; its hash is the caller's to check.
  };
  // Fetches a pack; a stream that breaks goes on where it broke. `accept` is told of the pack
  // before its bytes come; its error ends the call. ResourceExhausted: larger than `limit_bytes`.
  // DataLoss: the bytes do not fit each other.
  StatusOr<Pulled> Pull(const Wanted& wanted, std::uint64_t limit_bytes,
                        const std::function<Status(const PackInfo&)>& accept,
                        std::stop_token stop = {}) const;

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace tenon::rpc
