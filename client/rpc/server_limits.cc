#include "client/rpc/server_limits.h"

#include <memory>

#include <grpcpp/alarm.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include "client/rpc/connection.h"
#include "core/base/mutex.h"

namespace tenon::rpc {
namespace {

using std::chrono::milliseconds;

int Ms(milliseconds time) { return static_cast<int>(time.count()); }

}  // namespace

void SetServerLimits(grpc::ServerBuilder& builder, int threads_max) {
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  builder.SetResourceQuota(
      grpc::ResourceQuota("callers").Resize(kServerBuffersBytesMax).SetMaxThreads(threads_max));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Ms(kHandshakeMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Ms(kIdleConnectionMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Ms(kConnectionMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Ms(kLastCallsMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsOfAConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Ms(kServerPing));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Clients ping every 20 s; without this they would be sent away as too eager.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Two servers on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

// The alarm may go off while the call ends, so while one is set this object owns itself. (The alarm
// could own it, too, but would read its pointer without the lock.)
struct TransferLimit::Watch : std::enable_shared_from_this<Watch> {
  using Clock = std::chrono::steady_clock;

  void Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    alarm = std::make_unique<grpc::Alarm>();  // A new one: this may be called by the last.
    self = shared_from_this();
    alarm->Set(std::chrono::system_clock::now() + left, [this](bool) { Look(); });
  }
  // Called once for each alarm: when it goes off, or is no more.
  void Look() {
    std::shared_ptr<Watch> last;  // Goes after the lock.
    const base::MutexLock lock(mutex);
    last = std::move(self);
    if (context == nullptr) return;
    if (Clock::now() < end) return Arm();
    context->TryCancel();
  }

  base::Mutex mutex;
  // Null: the call has ended.
  grpc::ServerContextBase* context ABSL_GUARDED_BY(mutex) = nullptr;
  Clock::time_point end ABSL_GUARDED_BY(mutex);
  // Less than a MiB, which the end does not count yet.
  std::size_t bytes ABSL_GUARDED_BY(mutex) = 0;
  std::unique_ptr<grpc::Alarm> alarm ABSL_GUARDED_BY(mutex);
  std::shared_ptr<Watch> self ABSL_GUARDED_BY(mutex);
};

TransferLimit::TransferLimit(grpc::ServerContextBase* context, milliseconds limit)
    : watch_(std::make_shared<Watch>()) {
  const base::MutexLock lock(watch_->mutex);
  watch_->context = context;
  watch_->end = Watch::Clock::now() + limit;
  watch_->Arm();
}

TransferLimit::~TransferLimit() {
  std::unique_ptr<grpc::Alarm> last;
  const base::MutexLock lock(watch_->mutex);
  watch_->context = nullptr;
  last = std::move(watch_->alarm);
}

void TransferLimit::Moved(std::size_t bytes) {
  const base::MutexLock lock(watch_->mutex);
  watch_->bytes += bytes;
  watch_->end += std::chrono::seconds(watch_->bytes >> 20);
  watch_->bytes &= (std::size_t{1} << 20) - 1;
}

}  // namespace tenon::rpc
