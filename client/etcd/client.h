// Client: what Tenon asks of etcd: keys, transactions, leases. The limits of a request are etcd's
// own: kRequestBytesMax bytes, kOperationsMax operations.
//
// Every call here may be repeated by the client itself, at another endpoint too, when its outcome
// is unknown. So a transaction must be such that doing it twice is as good as once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/rpc/connection.h"
#include "core/base/status.h"

namespace tenon::etcd {

// Below etcd's defaults of 128 operations and 1.5 MiB, with room for keys and framing.
inline constexpr std::size_t kOperationsMax = 100;
inline constexpr std::size_t kRequestBytesMax = std::size_t{1} << 20;

struct KeyValue {
  std::string key, value;
  std::int64_t create_revision = 0;
  std::int64_t lease = 0;
};

// The keys in [first, end).
struct KeyRange {
  std::string first, end;
};
// All keys with this prefix, which is not empty.
KeyRange Prefix(std::string_view prefix);

// A change of one key, or of a range. A value type.
struct Operation {
  enum class Kind : std::uint8_t { kPut, kDelete, kDeletePrefix };
  Kind kind = Kind::kPut;
  std::string key;
  std::string value;       // Of kPut.
  std::int64_t lease = 0;  // Of kPut; 0: it stays.
  std::size_t bytes() const { return key.size() + value.size() + 32; }
};

// What must hold for a transaction: `key` was created at this revision; 0: there is no such key.
struct Condition {
  std::string key;
  std::int64_t create_revision = 0;
};

struct TxnResult {
  bool succeeded = false;         // Else nothing was changed, and ..
  std::int64_t revision = 0;      // Of the store after it.
  std::optional<KeyValue> found;  // .. this is what the condition's key has.
};

struct Lease {
  std::int64_t id = 0;
  std::chrono::seconds ttl{0};
};

struct ClientOptions {
  std::string endpoints;         // HOST:PORT[,HOST:PORT..]
  rpc::Credentials credentials;  // TLS.
  // Of one endpoint, then the next one is asked: for keys, and for leases, which are small and
  // urgent.
  rpc::Milliseconds attempt{2000}, lease_attempt{1000};
  // Told how long each call took, repetitions included. May be null; from several threads.
  std::function<void(std::string_view call, bool ok, std::chrono::microseconds took)> on_call;
};

// Errors: UNAVAILABLE, DEADLINE_EXCEEDED: etcd did not answer within `limit`, and what was asked
// for may have been done or not. RESOURCE_EXHAUSTED: etcd is full. Others: etcd refused.
// Thread-safe.
class Client {
 public:
  // InvalidArgument: not an address. Does not connect yet.
  static StatusOr<std::unique_ptr<Client>> Open(const ClientOptions& options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // Reads are linearizable: they show every transaction that was acknowledged before.
  StatusOr<std::optional<KeyValue>> Get(const std::string& key, rpc::Milliseconds limit,
                                        std::stop_token stop = {}) const;
  // The first `count` keys of a range, in order; `keys_only` leaves the values empty.
  struct RangeOptions {
    std::int64_t count = 256;
    bool keys_only = false;
  };
  struct Page {
    std::vector<KeyValue> found;
    bool more = false;
  };
  StatusOr<Page> Range(const KeyRange& range, const RangeOptions& options, rpc::Milliseconds limit,
                       std::stop_token stop = {}) const;
  // All operations, if the condition holds.
  StatusOr<TxnResult> Txn(const Condition& condition, const std::vector<Operation>& operations,
                          rpc::Milliseconds limit, std::stop_token stop = {}) const;

  StatusOr<Lease> Grant(std::chrono::seconds ttl, rpc::Milliseconds limit,
                        std::stop_token stop = {}) const;
  // What it now lives for, from some moment of the call; 0: it has expired.
  StatusOr<std::chrono::seconds> KeepAlive(std::int64_t lease, rpc::Milliseconds limit,
                                           std::stop_token stop = {}) const;
  // Its keys are gone then. NotFound: it had expired.
  Status Revoke(std::int64_t lease, rpc::Milliseconds limit, std::stop_token stop = {}) const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::etcd
