// EtcdJournal: what must survive, in etcd, for a leader (leadership.h). Keys and values are
// specified in docs/formats/etcd.md.
//
// - Every transaction has the leader's fence as its condition.
// - A value above kInlineBytesMax lies apart, in chunks that are written before the value that
// names
//   them, and swept by the next leader if that never came.
// - A batch that one transaction cannot take is first written as one value, the *redo record*; that
//   makes it durable, as a whole. Then it is carried out, in as many transactions as it needs, and
//   the record is removed. Who becomes leader and finds one carries it out first.
//
// The leader is the only one that writes, so it reads from memory: all keys and all values but the
// large ones are read once, when it takes over.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "client/etcd/client.h"
#include "coordinator/board/journal.h"
#include "coordinator/etcd/leadership.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon::coordinator {

inline constexpr std::size_t kInlineBytesMax = std::size_t{128} << 10;
inline constexpr std::size_t kEtcdChunkBytes = std::size_t{512} << 10;

struct EtcdJournalOptions {
  std::string prefix;  // Of all keys in etcd.
  // How long a write waits for an etcd that does not answer. After it, or when another leader was
  // seen, this one's term ends: nobody knows what etcd will have made of the write.
  std::chrono::milliseconds patience{10'000};
};

// Thread-safe. Errors: UNAVAILABLE as NotLeader's when the term has ended; RESOURCE_EXHAUSTED: etcd
// is full; DATA_LOSS.
class EtcdJournal : public board::Journal {
 public:
  // Carries out what the leader before left undone, and reads everything. FailedPrecondition: keys
  // of another version. The client and the leadership outlive it.
  static StatusOr<std::unique_ptr<EtcdJournal>> Open(const etcd::Client& client,
                                                     Leadership& leadership,
                                                     EtcdJournalOptions options,
                                                     std::stop_token stop);

  Status Write(const store::Batch& batch) override;
  StatusOr<std::optional<std::string>> Get(store::Family family,
                                           std::string_view key) const override;
  Status Scan(store::Family family, std::string_view prefix,
              const store::Store::Visit& visit) const override;

  struct Figures {
    std::size_t keys = 0;
    std::uint64_t bytes = 0;  // Of keys and values, those that lie apart included.
  };
  Figures figures() const;

 private:
  // Where a value lies: here, or in the chunks of an upload.
  struct Stored {
    std::string bytes;
    std::string upload;  // Empty: `bytes` is the value.
    std::uint64_t size = 0;
    std::uint32_t crc32c = 0;
  };
  // A change as etcd will see it.
  struct Change {
    std::string key;  // Without the prefix.
    std::optional<Stored> value;
    std::string dropped;  // The upload of the value before, which nobody needs any more.
  };

  EtcdJournal(const etcd::Client& client, Leadership& leadership, EtcdJournalOptions options,
              std::stop_token stop);
  Status Load();
  Status LoadRedo();
  Status LoadValues();
  Status Sweep();

  static std::string Encode(const Stored& value);
  static StatusOr<Stored> Decode(const std::string& key, std::string_view bytes);
  static std::string EncodeRedo(const std::vector<Change>& changes);
  static StatusOr<std::vector<Change>> DecodeRedo(std::string_view bytes);

  // One fenced transaction.
  Status Commit(const std::vector<etcd::Operation>& operations);
  // What a value becomes; large ones are uploaded.
  StatusOr<Stored> Store(std::string_view value);
  StatusOr<std::string> Fetch(const std::string& key, const Stored& value) const;
  Status CommitChanges(const std::vector<Change>& changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  Status CarryOut(const std::vector<Change>& changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  Status FinishRedo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writing_);
  void Remember(const std::vector<Change>& changes);
  std::vector<etcd::Operation> OperationsOf(const Change& change) const;
  std::string UploadKey(std::string_view upload, std::uint32_t chunk) const;

  const etcd::Client& client_;
  Leadership& leadership_;
  const EtcdJournalOptions options_;
  const std::stop_token stop_;
  std::atomic<std::uint64_t> uploads_{0};  // Numbers them, within a term.

  base::Mutex writing_;  // One write after the other, so that memory and etcd have one order.
  std::vector<Change> redo_ ABSL_GUARDED_BY(writing_);  // Committed, not yet carried out.
  std::string redo_upload_ ABSL_GUARDED_BY(writing_);   // Where its record lies, if apart.
  mutable base::Mutex mutex_;
  std::map<std::string, Stored, std::less<>> values_ ABSL_GUARDED_BY(mutex_);  // FAMILY/KEY
};

}  // namespace tenon::coordinator
