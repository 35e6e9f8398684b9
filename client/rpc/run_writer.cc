// The invariant: `runs` are those put and not acknowledged, in order; the first `sent` of them went
// out on the stream that is open, with the sequence numbers base+1, base+2, ..
#include "client/rpc/run_writer.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "core/base/mutex.h"
#include "proto/convert/status.h"
#include "tenon/v1/store.grpc.pb.h"

namespace tenon::rpc {

struct RunWriter::Impl {
  using Clock = std::chrono::steady_clock;
  using Stream = grpc::ClientReaderWriter<v1::PutRunsRequest, v1::PutRunsResponse>;

  Impl(std::shared_ptr<Connection> c, Milliseconds p) : connection(std::move(c)), patience(p) {}

  static constexpr Milliseconds kPauseMin{50};
  static constexpr Milliseconds kPauseMax{2000};
  static constexpr Milliseconds kLook{200};  // How late a stop is seen.

  void Send(const std::stop_token& ended);
  std::optional<Milliseconds> AfterStream(const Status& status, const std::stop_token& ended);
  Status OneStream(const std::stop_token& ended);
  void Hear(Stream& stream);
  bool WaitForWork(const std::stop_token& ended, v1::PutRunsRequest& request);

  const std::shared_ptr<Connection> connection;
  const Milliseconds patience;

  base::Mutex mutex;
  // What Put and Sync wait for; a failure ends both waits.
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return !failed.ok() || bytes < kUnacknowledgedBytesMax;
  }
  bool AllAcknowledged() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return !failed.ok() || runs.empty();
  }

  std::deque<Run> runs ABSL_GUARDED_BY(mutex);
  std::size_t bytes ABSL_GUARDED_BY(mutex) = 0;
  std::size_t sent ABSL_GUARDED_BY(mutex) = 0;
  std::uint64_t base ABSL_GUARDED_BY(mutex) = 0;
  std::uint64_t streams ABSL_GUARDED_BY(mutex) = 0;
  bool broken ABSL_GUARDED_BY(mutex) = false;    // The stream: nothing more will be heard.
  bool progress ABSL_GUARDED_BY(mutex) = false;  // Acknowledgements since the stream was opened.
  Milliseconds pause ABSL_GUARDED_BY(mutex) = kPauseMin;
  // Since when an acknowledgement is owed, or the time of the last one.
  Clock::time_point owed_since ABSL_GUARDED_BY(mutex);
  Status failed ABSL_GUARDED_BY(mutex) = OkStatus();
  std::unique_ptr<std::stop_callback<std::function<void()>>> given_up;
  std::jthread sender;
};

// Takes acknowledgements until the stream ends.
void RunWriter::Impl::Hear(Stream& stream) {
  v1::PutRunsResponse answer;
  bool sane = true;
  while (sane && stream.Read(&answer)) {
    const base::MutexLock lock(mutex);
    sane = base <= answer.acknowledged() && answer.acknowledged() - base <= sent;
    while (sane && base < answer.acknowledged()) {
      bytes -= runs.front().data.size();
      runs.pop_front();
      --sent;
      ++base;
      progress = true;
      owed_since = Clock::now();
    }
  }
  const base::MutexLock lock(mutex);
  if (!sane) failed = base::Internal(connection->endpoint() + ": acknowledged what was not sent");
  broken = true;
}

// Fills in the next run to send; false when there will be none on this stream.
bool RunWriter::Impl::WaitForWork(const std::stop_token& ended, v1::PutRunsRequest& request) {
  const base::MutexLock lock(mutex);
  const auto ready = [this, &ended]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return broken || ended.stop_requested() || !failed.ok() || sent < runs.size();
  };
  // With a deadline: a stop does not wake this by itself.
  while (!mutex.AwaitFor(ready, kLook)) {
  }
  if (broken || ended.stop_requested() || !failed.ok()) return false;
  const Run& run = runs[sent];
  ++sent;
  request.set_sequence(base + sent);
  v1::Run& out = *request.mutable_run();
  out.set_table(run.table);
  out.set_bucket_bits(run.bucket_bits);
  out.set_bucket(run.bucket);
  out.set_shard(run.shard);
  out.set_part(run.part);
  out.set_data(run.data);
  return true;
}

Status RunWriter::Impl::OneStream(const std::stop_token& ended) {
  v1::StoreService::Stub stub(connection->channel());
  grpc::ClientContext context;
  connection->Prepare(context, Milliseconds(0));
  const std::stop_callback cancel(ended, [&] { context.TryCancel(); });
  {
    const base::MutexLock lock(mutex);
    sent = 0;
    base = 0;
    broken = false;
    ++streams;
  }
  const auto stream = stub.PutRuns(&context);
  std::jthread hearer([&] { Hear(*stream); });
  v1::PutRunsRequest request;
  while (WaitForWork(ended, request)) {
    if (!stream->Write(request)) break;
  }
  const bool foreign = [&] {
    const base::MutexLock lock(mutex);
    return !failed.ok();
  }();
  if (ended.stop_requested() || foreign) context.TryCancel();
  hearer.join();
  return convert::FromGrpc(stream->Finish());
}

// What a stream's end means: how long to pause before the next one, or nothing: that was all.
std::optional<Milliseconds> RunWriter::Impl::AfterStream(const Status& status,
                                                         const std::stop_token& ended) {
  const base::MutexLock lock(mutex);
  if (!failed.ok() || ended.stop_requested()) return std::nullopt;
  if (progress) pause = kPauseMin;
  progress = false;
  // A server that is shut down ends streams in its own ways.
  const bool passing =
      status.ok() || convert::IsRetriable(status) || status.code() == absl::StatusCode::kCancelled;
  const convert::ErrorDetails details = convert::DetailsOf(status);
  if (!passing || (!runs.empty() && Clock::now() - owed_since > patience)) {
    failed = convert::WithDetails(
        base::Annotate(status.ok() ? base::Unavailable("the stream keeps ending") : status,
                       fmt::format("{}: writing runs", connection->endpoint())),
        details);
    return std::nullopt;
  }
  const Milliseconds wait = details.retry_after ? std::max(*details.retry_after, pause) : pause;
  pause = std::min(pause * 2, kPauseMax);
  return wait;
}

void RunWriter::Impl::Send(const std::stop_token& ended) {
  while (!ended.stop_requested()) {
    {  // A stream is opened only for something to send.
      const base::MutexLock lock(mutex);
      const auto ready = [this, &ended]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
        return ended.stop_requested() || !failed.ok() || !runs.empty();
      };
      if (!mutex.AwaitFor(ready, kLook)) continue;
      if (!failed.ok()) return;
    }
    if (ended.stop_requested()) return;
    const auto wait = AfterStream(OneStream(ended), ended);
    if (!wait) return;
    connection->PauseFor(*wait, ended);
  }
}

RunWriter::RunWriter(std::shared_ptr<Connection> connection, Milliseconds patience,
                     std::stop_token stop)
    : impl_(std::make_unique<Impl>(std::move(connection), patience)) {
  Impl* impl = impl_.get();
  impl->sender = std::jthread([impl](std::stop_token ended) { impl->Send(ended); });
  impl->given_up = std::make_unique<std::stop_callback<std::function<void()>>>(
      std::move(stop), std::function<void()>([impl] {
        impl->sender.request_stop();
        const base::MutexLock lock(impl->mutex);
        if (impl->failed.ok()) impl->failed = absl::CancelledError("writing runs was given up");
      }));
}

RunWriter::~RunWriter() {
  impl_->given_up.reset();
  impl_->sender.request_stop();
  impl_->sender.join();
}

Status RunWriter::Put(Run run) {
  const base::MutexLock lock(impl_->mutex);
  impl_->mutex.Await([this]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->mutex) { return impl_->HasRoom(); });
  RETURN_IF_ERROR(impl_->failed);
  if (impl_->runs.empty()) impl_->owed_since = Impl::Clock::now();
  impl_->bytes += run.data.size();
  impl_->runs.push_back(std::move(run));
  return OkStatus();
}

Status RunWriter::Sync() {
  const base::MutexLock lock(impl_->mutex);
  impl_->mutex.Await(
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->mutex) { return impl_->AllAcknowledged(); });
  return impl_->failed;
}

std::uint64_t RunWriter::streams() const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->streams;
}

}  // namespace tenon::rpc
