#include "store/service.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "client/registry/sha256.h"
#include "core/base/crc32c.h"
#include "core/base/kill_point.h"
#include "core/base/mutex.h"
#include "proto/convert/status.h"
#include "store/artifact.h"
#include "store/run.h"
#include "tenon/v1/store.grpc.pb.h"

namespace tenon::store {
namespace {

using convert::ToGrpc;

constexpr std::size_t kRunBytesMax = std::size_t{3} << 20;
constexpr std::size_t kStreamQueueBytes = std::size_t{8} << 20;
constexpr std::size_t kCommitBytes = std::size_t{32} << 20;
// Of all streams together; beyond it each stream has one run under way, however many they are.
constexpr std::size_t kQueueBytes = std::size_t{256} << 20;
constexpr std::uint64_t kArtifactBytesMax = std::uint64_t{16} << 30;
constexpr std::chrono::milliseconds kDiskFullRetry{2000};

Status Invalid(std::string field, const std::string& what) {
  return convert::Violations({{std::move(field), what}});
}

// Refuses writes while the disk is nearly full.
class DiskGuard {
 public:
  DiskGuard(const Store& store, const ServerOptions& options) : store_(store), options_(options) {}

  StatusOr<std::uint64_t> Free() const {
    return options_.free_bytes ? options_.free_bytes() : store_.FreeBytes();
  }
  Status Check() const {
    ASSIGN_OR_RETURN(const std::uint64_t free, Free());
    if (free >= options_.disk_reserve_bytes) return OkStatus();
    return Full(base::ResourceExhausted(fmt::format(
        "store {}: {} bytes are free and {} are kept in reserve: nothing more is written until "
        "there is room again; what was acknowledged is safe",
        store_.directory(), free, options_.disk_reserve_bytes)));
  }
  // With the details that tell a client to come again.
  static Status Full(const Status& s) {
    if (s.code() != absl::StatusCode::kResourceExhausted) return s;
    return convert::WithDetails(s, {.reason = "DISK_FULL", .retry_after = kDiskFullRetry});
  }

 private:
  const Store& store_;
  const ServerOptions& options_;
};

// The tables that were dropped. Writes happen under a lock that dropping takes alone, so that no
// late write of a worker, whose job has ended meanwhile, comes after the removal. Thread-safe.
class Tables {
 public:
  Status Load(const Store& store) {
    ASSIGN_OR_RETURN(const std::vector<std::uint64_t> dropped, DroppedTables(store));
    const base::WriterLock lock(mutex_);
    dropped_.insert(dropped.begin(), dropped.end());
    return OkStatus();
  }
  void MarkDropped(std::uint64_t table) {
    const base::WriterLock lock(mutex_);
    dropped_.insert(table);
  }
  base::SharedMutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  Status Check(std::uint64_t table) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    if (dropped_.count(table) == 0) return OkStatus();
    return convert::WithDetails(
        base::FailedPrecondition(
            fmt::format("table {} was dropped, its job has ended; give the task up", table)),
        {.reason = "TABLE_DROPPED", .metadata = {{"table", fmt::format("{}", table)}}});
  }

 private:
  base::SharedMutex mutex_;
  std::set<std::uint64_t> dropped_ ABSL_GUARDED_BY(mutex_);
};

// Who waits for a run to become durable.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual void Committed(std::uint64_t sequence, std::size_t bytes, const Status& status) = 0;
};

// Writes what has queued up, in one batch after another. Thread-safe.
class Committer {
 public:
  Committer(Store& store, const DiskGuard& disk, Tables& tables)
      : store_(store),
        disk_(disk),
        tables_(tables),
        thread_([this](std::stop_token stop) { Run(stop); }) {}
  ~Committer() {
    thread_.request_stop();
    const base::MutexLock lock(mutex_);
    stopping_ = true;
  }

  void Add(std::shared_ptr<Writer> writer, std::uint64_t sequence, const RunKey& key,
           std::string run) {
    const base::MutexLock lock(mutex_);
    queued_bytes_ += run.size();
    items_.push_back({std::move(writer), sequence, key, std::move(run)});
  }
  // Batches, runs and bytes; those that wait.
  void Tell(ServerFigures& out) const {
    out.batches = batches_;
    out.runs = runs_;
    out.run_bytes = run_bytes_;
    out.queued_bytes = queued_bytes_;
    out.refused_batches = refused_;
  }
  // How much of one stream may wait now.
  std::size_t StreamQueueBytes() const {
    return queued_bytes_ < kQueueBytes ? kStreamQueueBytes : 1;
  }

 private:
  struct Item {
    std::shared_ptr<Writer> writer;
    std::uint64_t sequence = 0;
    RunKey key;
    std::string run;
    Status late = OkStatus();  // Its table was dropped.
  };

  Status Write(std::vector<Item>& items) {
    RETURN_IF_ERROR(disk_.Check());
    const base::ReaderLock lock(tables_.mutex());
    Batch batch;
    for (Item& item : items) {
      item.late = tables_.Check(item.key.job);
      if (item.late.ok()) PutRun(batch, item.key, item.run);
    }
    return batch.empty() ? OkStatus() : DiskGuard::Full(store_.Write(batch));
  }

  void Count(const std::vector<Item>& items, const Status& written) {
    if (!written.ok()) {
      ++refused_;
      return;
    }
    ++batches_;
    for (const Item& item : items) {
      if (!item.late.ok()) continue;
      ++runs_;
      run_bytes_ += item.run.size();
    }
  }

  std::vector<Item> Take() {
    const base::MutexLock lock(mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || !items_.empty();
    };
    mutex_.Await(ready);
    std::vector<Item> out;
    for (std::size_t bytes = 0; !items_.empty() && bytes < kCommitBytes;) {
      bytes += items_.front().run.size();
      queued_bytes_ -= items_.front().run.size();
      out.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return out;
  }

  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<Item> items = Take();
      if (items.empty()) continue;
      const Status written = Write(items);
      Count(items, written);
      TENON_KILL_POINT("store.acknowledge.before");
      // One answer a stream: the last sequence number of it speaks for those before.
      struct Sum {
        std::shared_ptr<Writer> writer;
        std::uint64_t last = 0;
        std::size_t bytes = 0;
        Status status = OkStatus();
      };
      std::map<const Writer*, Sum> sums;
      for (const Item& item : items) {
        Sum& sum = sums[item.writer.get()];
        sum.writer = item.writer;
        sum.last = item.sequence;
        sum.bytes += item.run.size();
        if (sum.status.ok()) sum.status = item.late.ok() ? written : item.late;
      }
      for (const auto& [writer, sum] : sums) {
        sum.writer->Committed(sum.last, sum.bytes, sum.status);
      }
    }
  }

  Store& store_;
  const DiskGuard& disk_;
  Tables& tables_;
  base::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  std::atomic<std::size_t> queued_bytes_ = 0;
  std::atomic<std::uint64_t> batches_ = 0, runs_ = 0, run_bytes_ = 0, refused_ = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

Status FromMessage(const v1::Run& message, RunKey& key) {
  if (message.bucket_bits() > 20) return Invalid("run.bucket_bits", "at most 20");
  if (message.bucket() >> message.bucket_bits() != 0) {
    return Invalid("run.bucket", "not below 2^bucket_bits");
  }
  if (message.data().size() > kRunBytesMax) return Invalid("run.data", "more than 3 MiB");
  if (const Status s = CheckRun(message.data(), int(message.bucket_bits()), message.bucket());
      !s.ok()) {
    return Invalid("run.data", base::Message(s));
  }
  key = {message.table(), message.bucket(), message.shard(), message.part()};
  return OkStatus();
}

// One PutRuns call. It owns itself until OnDone; runs under way own it, too.
class PutRunsCall final : public grpc::ServerBidiReactor<v1::PutRunsRequest, v1::PutRunsResponse>,
                          public Writer,
                          public std::enable_shared_from_this<PutRunsCall> {
 public:
  static grpc::ServerBidiReactor<v1::PutRunsRequest, v1::PutRunsResponse>* Begin(
      Committer& committer) {
    auto call = std::shared_ptr<PutRunsCall>(new PutRunsCall(committer));
    // With the lock, so that callbacks in other threads see what was made here by more than gRPC's
    // word, which ThreadSanitizer does not hear.
    const base::MutexLock lock(call->mutex_);
    call->self_ = call;
    call->StartRead(&call->request_);
    return call.get();
  }

  void OnReadDone(bool ok) override {
    const base::MutexLock lock(mutex_);
    if (!ok) {
      closed_ = true;
      FinishWhenDone();
      return;
    }
    if (finished_) return;
    const Status status = Queue();
    if (!status.ok()) return End(status);
    if (queued_bytes_ < committer_.StreamQueueBytes()) {
      StartRead(&request_);
    } else {
      paused_ = true;
    }
  }

  void Committed(std::uint64_t sequence, std::size_t bytes, const Status& status) override {
    const base::MutexLock lock(mutex_);
    queued_bytes_ -= bytes;
    if (finished_) return;
    if (!status.ok()) return End(status);
    committed_ = sequence;
    Acknowledge();
    if (paused_ && queued_bytes_ < committer_.StreamQueueBytes()) {
      paused_ = false;
      StartRead(&request_);
    }
    FinishWhenDone();
  }

  void OnWriteDone(bool ok) override {
    const base::MutexLock lock(mutex_);
    writing_ = false;
    if (finished_) {  // It waited for this write.
      Finish(ToGrpc(end_));
      return;
    }
    if (!ok) return End(absl::CancelledError("the client is gone"));
    Acknowledge();
    FinishWhenDone();
  }

  void OnCancel() override {
    const base::MutexLock lock(mutex_);
    if (!finished_) End(absl::CancelledError("the client is gone"));
  }

  void OnDone() override {
    std::shared_ptr<PutRunsCall> self;  // Goes after the lock.
    const base::MutexLock lock(mutex_);
    self = std::move(self_);
  }

 private:
  explicit PutRunsCall(Committer& committer) : committer_(committer) {}

  Status Queue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (request_.sequence() != queued_ + 1) {
      return Invalid("sequence", fmt::format("{} after {}", request_.sequence(), queued_));
    }
    RunKey key;
    RETURN_IF_ERROR(FromMessage(request_.run(), key));
    ++queued_;
    queued_bytes_ += request_.run().data().size();
    committer_.Add(shared_from_this(), queued_, key,
                   std::move(*request_.mutable_run()->mutable_data()));
    return OkStatus();
  }
  void Acknowledge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || response_.acknowledged() == committed_) return;
    writing_ = true;
    response_.set_acknowledged(committed_);
    StartWrite(&response_);
  }
  void FinishWhenDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_ || !closed_ || writing_ || committed_ != queued_) return;
    End(OkStatus());
  }
  void End(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    end_ = status;
    if (!writing_) Finish(ToGrpc(status));
  }

  Committer& committer_;
  base::Mutex mutex_;
  std::shared_ptr<PutRunsCall> self_ ABSL_GUARDED_BY(mutex_);
  v1::PutRunsRequest request_;
  v1::PutRunsResponse response_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;     // Sequence numbers.
  std::uint64_t committed_ ABSL_GUARDED_BY(mutex_) = 0;  // Likewise.
  std::size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // By the client: no more runs.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  Status end_ ABSL_GUARDED_BY(mutex_) = OkStatus();
};

// An artifact as it arrives, cut anew into chunks of the store.
class Upload {
 public:
  Upload(Store& store, const v1::ArtifactHeader& header) : store_(store), header_(header) {
    std::random_device device;
    artifact_ = {header.size(), header.sha256(), std::uint64_t{device()} << 32 | device()};
  }
  static Status Check(const v1::ArtifactHeader& h) {
    std::vector<convert::Violation> found;
    if (!IsArtifactName(h.name())) found.push_back({"header.name", "1 to 64 of [a-z0-9._-]"});
    if (h.size() > kArtifactBytesMax) found.push_back({"header.size", "more than 16 GiB"});
    if (h.sha256().size() != 64 || !registry::FromHex(h.sha256())) {
      found.push_back({"header.sha256", "64 hexadecimal digits"});
    }
    return convert::Violations(found);
  }
  Status Add(const v1::Chunk& chunk) {
    if (chunk.offset() != received_) {
      return Invalid("chunk.offset", fmt::format("{}, not {}", chunk.offset(), received_));
    }
    if (chunk.data().size() > kArtifactChunkBytes) return Invalid("chunk.data", "more than 1 MiB");
    if (base::Crc32c(chunk.data()) != chunk.crc32c()) {
      return Invalid("chunk.crc32c", "it is not that of the data; send it again");
    }
    received_ += chunk.data().size();
    if (received_ > header_.size()) return Invalid("chunk.data", "more than the size announced");
    hash_.Add(chunk.data());
    pending_ += chunk.data();
    if (pending_.size() >= kArtifactChunkBytes) RETURN_IF_ERROR(Flush(kArtifactChunkBytes));
    return OkStatus();
  }
  Status Commit() {
    if (!pending_.empty()) RETURN_IF_ERROR(Flush(pending_.size()));
    if (received_ != header_.size()) {
      return Invalid("chunk.data", fmt::format("{} of {} bytes", received_, header_.size()));
    }
    if (registry::ToHex(hash_.Finish()) != header_.sha256()) {
      return Invalid("header.sha256", "it is not that of the data");
    }
    return CommitArtifact(store_, header_.table(), header_.name(), artifact_);
  }
  std::uint64_t table() const { return header_.table(); }
  void Abandon() {
    // The upload has failed for a reason of its own, which is the one to tell.
    AbandonUpload(store_, header_.table(), artifact_.upload).IgnoreError();
  }

 private:
  Status Flush(std::size_t bytes) {
    RETURN_IF_ERROR(PutArtifactChunk(store_, header_.table(), artifact_.upload, index_++,
                                     std::string_view(pending_).substr(0, bytes)));
    pending_.erase(0, bytes);
    return OkStatus();
  }

  Store& store_;
  v1::ArtifactHeader header_;
  Artifact artifact_;
  registry::Sha256Stream hash_;
  std::string pending_;
  std::uint64_t received_ = 0;
  std::uint32_t index_ = 0;
};

class Service final
    : public v1::StoreService::WithCallbackMethod_PutRuns<v1::StoreService::Service> {
 public:
  Service(Store& store, const ServerOptions& options)
      : store_(store),
        transfer_limit_(options.transfer_limit),
        disk_(store, options),
        committer_(store, disk_, tables_) {}

  Status Load() { return tables_.Load(store_); }
  ServerFigures figures() const {
    ServerFigures out;
    committer_.Tell(out);
    out.disk_free_bytes = disk_.Free().value_or(0);
    out.accepts_writes = disk_.Check().ok();
    return out;
  }

  grpc::ServerBidiReactor<v1::PutRunsRequest, v1::PutRunsResponse>* PutRuns(
      grpc::CallbackServerContext*) override {
    return PutRunsCall::Begin(committer_);
  }

  grpc::Status ScanRuns(grpc::ServerContext* context, const v1::ScanRunsRequest* request,
                        grpc::ServerWriter<v1::Run>* out) override {
    if (request->bucket_bits() > 20 || request->first_bucket() > request->end_bucket() ||
        request->end_bucket() > std::uint32_t{1} << request->bucket_bits()) {
      return ToGrpc(Invalid("end_bucket", "first_bucket <= end_bucket <= 2^bucket_bits"));
    }
    rpc::TransferLimit limit(context, transfer_limit_);
    v1::Run run;
    run.set_table(request->table());
    run.set_bucket_bits(request->bucket_bits());
    const auto send = [&](const RunKey& key, std::string_view bytes) -> Status {
      run.set_bucket(key.bucket);
      run.set_shard(key.shard);
      run.set_part(key.part);
      run.set_data(bytes.data(), bytes.size());
      limit.Moved(bytes.size());
      return out->Write(run) ? OkStatus() : absl::CancelledError("the client is gone");
    };
    return ToGrpc(store::ScanRuns(store_, request->table(), request->first_bucket(),
                                  request->end_bucket(), send));
  }

  grpc::Status PutArtifact(grpc::ServerContext* context,
                           grpc::ServerReader<v1::PutArtifactRequest>* in,
                           v1::PutArtifactResponse*) override {
    rpc::TransferLimit limit(context, transfer_limit_);
    v1::PutArtifactRequest request;
    if (!in->Read(&request) || !request.has_header()) {
      return ToGrpc(Invalid("header", "the first message has the header"));
    }
    Status status = Upload::Check(request.header());
    if (status.ok()) status = disk_.Check();
    if (!status.ok()) return ToGrpc(status);
    Upload upload(store_, request.header());
    while (status.ok() && in->Read(&request)) {
      status = request.has_chunk() ? upload.Add(request.chunk())
                                   : Invalid("chunk", "messages after the first have chunks");
      limit.Moved(request.chunk().data().size());
      if (status.ok()) status = disk_.Check();
    }
    if (status.ok() && context->IsCancelled()) {
      status = absl::CancelledError("the client is gone, or too slow");
    }
    if (status.ok()) {
      const base::ReaderLock lock(tables_.mutex());
      status = tables_.Check(upload.table());
      if (status.ok()) status = upload.Commit();
    }
    if (!status.ok()) upload.Abandon();
    return ToGrpc(DiskGuard::Full(status));
  }

  grpc::Status GetArtifact(grpc::ServerContext* context, const v1::GetArtifactRequest* request,
                           grpc::ServerWriter<v1::Chunk>* out) override {
    rpc::TransferLimit limit(context, transfer_limit_);
    return ToGrpc(SendArtifact(*request, *out, limit));
  }

  grpc::Status DropTable(grpc::ServerContext*, const v1::DropTableRequest* request,
                         v1::DropTableResponse*) override {
    tables_.MarkDropped(request->table());
    return ToGrpc(store::DropTable(store_, request->table()));
  }

  grpc::Status Stats(grpc::ServerContext*, const v1::StatsRequest*,
                     v1::StatsResponse* out) override {
    for (std::size_t k = 0; k < std::size(kFamilyNames); ++k) {
      v1::FamilyStats& family = *out->add_families();
      family.set_name(std::string(kFamilyNames[k]));
      family.set_disk_bytes(store_.DiskBytes(static_cast<Family>(k)));
    }
    const auto free = disk_.Free();
    if (!free.ok()) return ToGrpc(free.status());
    out->set_disk_free_bytes(*free);
    out->set_accepts_writes(disk_.Check().ok());
    return grpc::Status::OK;
  }

  grpc::Status Verify(grpc::ServerContext*, const v1::VerifyRequest*,
                      v1::VerifyResponse* out) override {
    const auto values = store_.Verify();
    if (!values.ok()) return ToGrpc(values.status());
    out->set_values(*values);
    return grpc::Status::OK;
  }

  grpc::Status Compact(grpc::ServerContext*, const v1::CompactRequest*,
                       v1::CompactResponse*) override {
    return ToGrpc(store_.Compact());
  }

  grpc::Status Checkpoint(grpc::ServerContext*, const v1::CheckpointRequest* request,
                          v1::CheckpointResponse* out) override {
    const std::string& name = request->name();
    if (!IsArtifactName(name) || name[0] == '.') {
      return ToGrpc(Invalid("name", "1 to 64 of [a-z0-9._-], not starting with a dot"));
    }
    // "/data/store/" and "/data/store" have the same neighbours.
    std::filesystem::path directory = std::filesystem::path(store_.directory()).lexically_normal();
    if (!directory.has_filename()) directory = directory.parent_path();
    directory = directory.parent_path() / name;
    const Status status = store_.Checkpoint(directory.string());
    if (!status.ok()) return ToGrpc(DiskGuard::Full(status));
    out->set_directory(directory.string());
    return grpc::Status::OK;
  }

 private:
  Status SendArtifact(const v1::GetArtifactRequest& request, grpc::ServerWriter<v1::Chunk>& out,
                      rpc::TransferLimit& limit) {
    ASSIGN_OR_RETURN(const std::optional<Artifact> artifact,
                     FindArtifact(store_, request.table(), request.name()));
    if (!artifact) {
      return base::NotFound(
          fmt::format("artifact {} of table {}: there is none", request.name(), request.table()));
    }
    if (request.offset() > artifact->size) return Invalid("offset", "beyond the end");
    v1::Chunk chunk;
    for (std::uint64_t at = request.offset(); at < artifact->size;) {
      ASSIGN_OR_RETURN(const std::string bytes,
                       GetArtifactChunk(store_, request.table(), *artifact,
                                        std::uint32_t(at / kArtifactChunkBytes)));
      const std::size_t skip = at % kArtifactChunkBytes;
      if (skip >= bytes.size()) return base::DataLoss("a chunk of an artifact is too short");
      chunk.set_offset(at);
      chunk.set_data(bytes.substr(skip));
      chunk.set_crc32c(base::Crc32c(chunk.data()));
      at += chunk.data().size();
      limit.Moved(chunk.data().size());
      if (!out.Write(chunk)) return absl::CancelledError("the client is gone");
    }
    return OkStatus();
  }

  Store& store_;
  const std::chrono::milliseconds transfer_limit_;
  DiskGuard disk_;
  Tables tables_;
  Committer committer_;
};

}  // namespace

struct Server::Impl {
  ServerOptions options;
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

StatusOr<std::unique_ptr<Server>> Server::Start(Store& store, const ServerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->service = std::make_unique<Service>(store, impl->options);
  RETURN_IF_ERROR(impl->service->Load());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      options.listen, options.credentials ? options.credentials : grpc::InsecureServerCredentials(),
      &impl->port);
  builder.RegisterService(impl->service.get());
  rpc::SetServerLimits(builder, options.threads_max);
  if (options.customize) options.customize(builder);
  impl->server = builder.BuildAndStart();
  if (!impl->server || impl->port == 0) {
    return base::Unavailable(
        fmt::format("{}: cannot listen there; is the port taken?", options.listen));
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  // Streams of workers never end by themselves.
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  impl_->server->Wait();
}

int Server::port() const { return impl_->port; }

ServerFigures Server::figures() const { return impl_->service->figures(); }

}  // namespace tenon::store
