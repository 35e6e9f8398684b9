#include "coordinator/publish/sink.h"

#include <fmt/core.h>

#include "coordinator/board/journal.h"
#include "core/base/mutex.h"

namespace tenon::coordinator {
namespace {

class JournalSink : public PackSink {
 public:
  explicit JournalSink(board::Journal& journal) : journal_(journal) {}

  Status Publish(const std::string& name, const std::string& version,
                 const std::string& file) override {
    const base::MutexLock lock(mutex_);
    const std::string key = KeyOf(name, version);
    ASSIGN_OR_RETURN(const auto before, journal_.Get(store::Family::kPacks, key));
    if (!before) {
      store::Batch batch;
      batch.Put(store::Family::kPacks, key, file);
      return journal_.Write(batch);
    }
    if (*before == file) return OkStatus();
    return absl::AlreadyExistsError(
        fmt::format("{}@{} is published with other content; give another version", name, version));
  }

  StatusOr<bool> Has(const std::string& name, const std::string& version) const override {
    ASSIGN_OR_RETURN(const auto found, journal_.Get(store::Family::kPacks, KeyOf(name, version)));
    return found.has_value();
  }

 private:
  static std::string KeyOf(const std::string& name, const std::string& version) {
    return fmt::format("file/{}@{}", name, version);
  }

  board::Journal& journal_;
  base::Mutex mutex_;  // Look-up and write are one step.
};

}  // namespace

std::unique_ptr<PackSink> MakeJournalSink(board::Journal& journal) {
  return std::make_unique<JournalSink>(journal);
}

}  // namespace tenon::coordinator
