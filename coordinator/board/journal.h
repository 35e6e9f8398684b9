// Journal: where the board and the registry keep what must survive. What is written is durable
// before anybody acts on it, so a coordinator that dies at any moment comes back to what it had
// acknowledged. In a store (here) or in etcd (coordinator/etcd/journal.h).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "proto/convert/status.h"
#include "store/store.h"

namespace tenon::board {

// Thread-safe.
class Journal {
 public:
  virtual ~Journal() = default;
  // All of it or nothing, durably.
  virtual Status Write(const store::Batch& batch) = 0;
  virtual StatusOr<std::optional<std::string>> Get(store::Family family,
                                                   std::string_view key) const = 0;
  virtual Status Scan(store::Family family, std::string_view prefix,
                      const store::Store::Visit& visit) const = 0;
};

// In a store, which outlives it.
class StoreJournal : public Journal {
 public:
  explicit StoreJournal(store::Store& store) : store_(store) {}
  // ResourceExhausted: the disk is full; callers are told to come again, so that nodes keep their
  // results and tasks until there is room.
  Status Write(const store::Batch& batch) override {
    const Status s = store_.Write(batch);
    if (!absl::IsResourceExhausted(s)) return s;
    return convert::WithDetails(
        s, {.reason = "DISK_FULL", .retry_after = std::chrono::milliseconds(1000)});
  }
  StatusOr<std::optional<std::string>> Get(store::Family family,
                                           std::string_view key) const override {
    return store_.Get(family, key);
  }
  Status Scan(store::Family family, std::string_view prefix,
              const store::Store::Visit& visit) const override {
    return store_.Scan(family, prefix, visit);
  }

 private:
  store::Store& store_;
};

}  // namespace tenon::board
