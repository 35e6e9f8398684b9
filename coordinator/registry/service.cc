// Messages in, messages out. A file is at most 64 MiB and is held in memory while it moves; few
// move at a time.
#include "coordinator/registry/service.h"

#include <atomic>
#include <chrono>

#include <fmt/core.h>
#include <grpcpp/server_builder.h>

#include "client/registry/pack_file.h"
#include "client/registry/sha256.h"
#include "core/base/crc32c.h"
#include "core/base/mutex.h"
#include "proto/convert/status.h"
#include "tenon/v1/registry.grpc.pb.h"

namespace tenon::coordinator {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr int kTransfersMax = 8;

void ToMessage(const ShelfEntry& entry, v1::PackInfo& info) {
  info.set_name(entry.name);
  info.set_version(pack::ToString(entry.version));
  info.set_address(entry.address);
  info.set_size(entry.size);
  info.set_file_sha256(entry.file_sha256);
  info.set_signer(entry.signer);
  info.set_published_at_ms(entry.published_at_ms);
  info.set_rules(static_cast<std::uint32_t>(entry.rules));
  for (const std::string& channel : entry.channels) info.add_channels(channel);
}

// One of the few transfers that there may be at a time.
class Place {
 public:
  explicit Place(std::atomic<int>& taken) : taken_(taken), ok_(++taken <= kTransfersMax) {}
  ~Place() { --taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  Status status() const {
    if (ok_) return OkStatus();
    return convert::WithDetails(
        base::ResourceExhausted("too many packs are pushed and pulled just now"),
        {.reason = "TOO_MANY_TRANSFERS", .retry_after = std::chrono::milliseconds(500)});
  }

 private:
  std::atomic<int>& taken_;
  const bool ok_;
};

struct Limits {
  std::atomic<int>* transfers;
  std::chrono::milliseconds time;
};

// Push and Pull: gRPC calls them back in one thread after another, which ThreadSanitizer cannot see
// to be in order. So each call takes the lock, the last one, too.

class Push : public grpc::ServerReadReactor<v1::PushPackRequest> {
 public:
  Push(CallbackServerContext* context, const Limits& limits, std::shared_ptr<PackShelf> shelf,
       v1::PackInfo* answer)
      : shelf_(std::move(shelf)),
        place_(*limits.transfers),
        limit_(context, limits.time),
        answer_(answer) {
    const base::MutexLock lock(mutex_);
    if (const Status s = place_.status(); !s.ok()) {
      Finish(convert::ToGrpc(s));
    } else {
      StartRead(&message_);
    }
  }
  void OnReadDone(bool ok) override {
    const base::MutexLock lock(mutex_);
    const Status status = ok ? Take() : Publish();
    if (!ok || !status.ok()) return Finish(convert::ToGrpc(status));
    StartRead(&message_);
  }
  void OnDone() override {
    { const base::MutexLock lock(mutex_); }
    delete this;
  }

 private:
  static Status Invalid(std::string field, std::string what) {
    return convert::Violations({{std::move(field), std::move(what)}});
  }
  Status Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (message_.has_header()) {
      if (announced_) return Invalid("header", "a second one");
      announced_ = true;
      size_ = message_.header().size();
      sha256_ = message_.header().file_sha256();
      if (size_ > registry::kPackBytesMax) {
        return Invalid("header.size", fmt::format("more than {}", registry::kPackBytesMax));
      }
      return OkStatus();
    }
    const v1::Chunk& chunk = message_.chunk();
    if (!announced_) return Invalid("header", "it must come first");
    if (chunk.offset() != file_.size()) return Invalid("chunk.offset", "not where the last ended");
    if (chunk.data().empty() || chunk.data().size() > kChunkBytes) {
      return Invalid("chunk.data", "1 byte to 1 MiB");
    }
    if (base::Crc32c(chunk.data()) != chunk.crc32c()) {
      return Invalid("chunk.crc32c", "it is not that of the data; send it again");
    }
    if (file_.size() + chunk.data().size() > size_) {
      return Invalid("chunk.data", "more than the size announced");
    }
    file_ += chunk.data();
    limit_.Moved(chunk.data().size());
    return OkStatus();
  }
  Status Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!announced_ || file_.size() != size_) {
      return Invalid("chunk", "the stream ended before the size announced");
    }
    if (registry::ToHex(registry::Sha256(file_)) != sha256_) {
      return Invalid("header.file_sha256", "it is not that of the bytes that came");
    }
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    ASSIGN_OR_RETURN(const ShelfEntry entry,
                     shelf_->Publish(file_, now.count(), /*signed_only=*/true));
    ToMessage(entry, *answer_);
    return OkStatus();
  }

  const std::shared_ptr<PackShelf> shelf_;
  const Place place_;
  rpc::TransferLimit limit_;
  v1::PackInfo* const answer_;
  base::Mutex mutex_;
  v1::PushPackRequest message_ ABSL_GUARDED_BY(mutex_);
  bool announced_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string sha256_ ABSL_GUARDED_BY(mutex_);
  std::string file_ ABSL_GUARDED_BY(mutex_);
};

class Pull : public grpc::ServerWriteReactor<v1::PullPackResponse> {
 public:
  Pull(CallbackServerContext* context, const Limits& limits, const PackShelf& shelf,
       const v1::PullPackRequest& request)
      : place_(*limits.transfers), limit_(context, limits.time), at_(request.offset()) {
    const base::MutexLock lock(mutex_);
    if (const Status status = Open(shelf, request); !status.ok()) {
      Finish(convert::ToGrpc(status));
    } else {
      StartWrite(&message_);
    }
  }
  void OnWriteDone(bool ok) override {
    const base::MutexLock lock(mutex_);
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the caller has gone"));
    if (at_ >= file_.size()) return Finish(grpc::Status::OK);
    const std::string_view part = std::string_view(file_).substr(at_, kChunkBytes);
    v1::Chunk& chunk = *message_.mutable_chunk();
    chunk.set_offset(at_);
    chunk.set_data(part.data(), part.size());
    chunk.set_crc32c(base::Crc32c(part));
    at_ += part.size();
    limit_.Moved(part.size());
    StartWrite(&message_);
  }
  void OnDone() override {
    { const base::MutexLock lock(mutex_); }
    delete this;
  }

 private:
  Status Open(const PackShelf& shelf, const v1::PullPackRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RETURN_IF_ERROR(place_.status());
    ASSIGN_OR_RETURN(const ShelfEntry entry,
                     shelf.Find(request.name(), {request.version(), request.channel()}));
    if (at_ > entry.size) {
      return convert::Violations({{"offset", fmt::format("the file has {} bytes", entry.size)}});
    }
    ASSIGN_OR_RETURN(file_, shelf.Read(entry));
    ToMessage(entry, *message_.mutable_info());
    return OkStatus();
  }

  const Place place_;
  rpc::TransferLimit limit_;
  base::Mutex mutex_;
  std::uint64_t at_ ABSL_GUARDED_BY(mutex_);
  std::string file_ ABSL_GUARDED_BY(mutex_);
  v1::PullPackResponse message_ ABSL_GUARDED_BY(mutex_);
};

class Registry final : public v1::RegistryService::CallbackService {
 public:
  Registry(std::shared_ptr<PackShelf> shelf, std::chrono::milliseconds limit)
      : shelf_(std::move(shelf)), limits_{&transfers_, limit} {}

  grpc::ServerReadReactor<v1::PushPackRequest>* PushPack(CallbackServerContext* context,
                                                         v1::PackInfo* answer) override {
    return new Push(context, limits_, shelf_, answer);
  }
  grpc::ServerWriteReactor<v1::PullPackResponse>* PullPack(
      CallbackServerContext* context, const v1::PullPackRequest* request) override {
    return new Pull(context, limits_, *shelf_, *request);
  }
  ServerUnaryReactor* ListPacks(CallbackServerContext* context, const v1::ListPacksRequest* request,
                                v1::ListPacksResponse* answer) override {
    const auto entries = shelf_->List(request->name());
    if (entries.ok()) {
      for (const ShelfEntry& entry : *entries) ToMessage(entry, *answer->add_packs());
    }
    return End(context, entries.status());
  }
  ServerUnaryReactor* SetChannel(CallbackServerContext* context,
                                 const v1::SetChannelRequest* request,
                                 v1::PackInfo* answer) override {
    const auto entry = shelf_->SetChannel(request->name(), request->channel(), request->version());
    if (entry.ok()) ToMessage(*entry, *answer);
    return End(context, entry.status());
  }

 private:
  static ServerUnaryReactor* End(CallbackServerContext* context, const Status& status) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(convert::ToGrpc(status));
    return reactor;
  }

  const std::shared_ptr<PackShelf> shelf_;
  std::atomic<int> transfers_{0};
  const Limits limits_;
};

}  // namespace

std::shared_ptr<void> AddRegistry(grpc::ServerBuilder& builder, std::shared_ptr<PackShelf> shelf,
                                  std::chrono::milliseconds limit) {
  auto service = std::make_shared<Registry>(std::move(shelf), limit);
  builder.RegisterService(service.get());
  return service;
}

}  // namespace tenon::coordinator
