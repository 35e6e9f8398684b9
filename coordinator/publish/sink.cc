#include "coordinator/publish/sink.h"

#include <fmt/core.h>

#include "core/base/mutex.h"
#include "store/store.h"

namespace tenon::coordinator {
namespace {

class StoreSink : public PackSink {
 public:
  explicit StoreSink(store::Store& store) : store_(store) {}

  Status Publish(const std::string& name, const std::string& version,
                 const std::string& file) override {
    const base::MutexLock lock(mutex_);
    const std::string key = KeyOf(name, version);
    ASSIGN_OR_RETURN(const auto before, store_.Get(store::Family::kPacks, key));
    if (!before) return store_.Put(store::Family::kPacks, key, file);
    if (*before == file) return OkStatus();
    return absl::AlreadyExistsError(
        fmt::format("{}@{} is published with other content; give another version", name, version));
  }

  StatusOr<bool> Has(const std::string& name, const std::string& version) const override {
    ASSIGN_OR_RETURN(const auto found, store_.Get(store::Family::kPacks, KeyOf(name, version)));
    return found.has_value();
  }

 private:
  static std::string KeyOf(const std::string& name, const std::string& version) {
    return fmt::format("file/{}@{}", name, version);
  }

  store::Store& store_;
  base::Mutex mutex_;  // Look-up and write are one step.
};

}  // namespace

std::unique_ptr<PackSink> MakeStoreSink(store::Store& store) {
  return std::make_unique<StoreSink>(store);
}

}  // namespace tenon::coordinator
