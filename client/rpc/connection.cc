#include "client/rpc/connection.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>

#include <fmt/core.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "proto/convert/status.h"

namespace tenon::rpc {
namespace {

using Clock = std::chrono::steady_clock;

bool IsLoopback(std::string_view endpoint) {
  return endpoint.starts_with("unix:") || endpoint.starts_with("127.") ||
         endpoint.starts_with("localhost:") || endpoint.starts_with("[::1]:");
}

bool IsEndpoint(std::string_view text) {
  if (text.starts_with("unix:")) return text.size() > 5;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.size() > 256) return false;
  const std::string_view port = text.substr(colon + 1);
  if (port.empty() || port.size() > 5) return false;
  int number = 0;
  for (const char c : port) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  return number >= 1 && number <= 65535 && text.find('/') == std::string_view::npos;
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& c) {
  if (!c.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = c.root_certificates;
  options.pem_cert_chain = c.certificate;
  options.pem_private_key = c.key;
  return grpc::SslCredentials(options);
}

// Sleeps, unless `stop` is requested first.
void Pause(Clock::duration time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

Status Stopped(const std::string& endpoint) {
  return absl::CancelledError(fmt::format("{}: the call was given up", endpoint));
}

}  // namespace

struct Connection::Impl {
  std::string endpoint;
  ConnectionOptions options;
  std::shared_ptr<grpc::Channel> channel;
};

StatusOr<std::shared_ptr<Connection>> Connection::Open(const std::string& endpoint,
                                                       const ConnectionOptions& options) {
  if (!IsEndpoint(endpoint)) {
    return base::InvalidArgument(
        fmt::format("'{}' is no address; give HOST:PORT or unix:PATH", endpoint));
  }
  const Credentials& c = options.credentials;
  if (!c.token.empty() && !c.tls && !IsLoopback(endpoint)) {
    return base::InvalidArgument(fmt::format(
        "{}: a token over an open connection can be read by others; use TLS", endpoint));
  }
  auto impl = std::make_unique<Impl>();
  impl->endpoint = endpoint;
  impl->options = options;
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kMessageBytesMax);
  args.SetMaxSendMessageSize(kMessageBytesMax);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive.count()));
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
              static_cast<int>(options.backoff.initial.count()));
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(options.backoff.initial.count()));
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(options.backoff.max.count()));
  // Repetition is ours: gRPC's own would not know which errors invite it.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A channel of its own, so that the credentials of one are never used by another.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (c.tls && !c.server_name.empty()) args.SetSslTargetNameOverride(c.server_name);
  impl->channel = grpc::CreateCustomChannel(endpoint, ChannelCredentialsOf(c), args);
  return std::shared_ptr<Connection>(new Connection(std::move(impl)));
}

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

const std::string& Connection::endpoint() const { return impl_->endpoint; }
const std::shared_ptr<grpc::Channel>& Connection::channel() const { return impl_->channel; }

void Connection::Prepare(grpc::ClientContext& context, Milliseconds limit) const {
  if (limit > Milliseconds(0)) context.set_deadline(std::chrono::system_clock::now() + limit);
  const std::string& token = impl_->options.credentials.token;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

void Connection::PauseFor(Milliseconds time, const std::stop_token& stop) const {
  const Clock::time_point end = Clock::now() + time;
  if (channel()->GetState(true) == GRPC_CHANNEL_READY) return Pause(time, stop);
  while (!stop.stop_requested() && Clock::now() < end) {
    const auto step = std::min<Clock::duration>(end - Clock::now(), Milliseconds(100));
    const auto until = std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(step);
    if (channel()->WaitForConnected(until)) return;
  }
}

Status Connection::Call(Milliseconds limit, const Attempt& attempt, std::stop_token stop) const {
  const Clock::time_point deadline = Clock::now() + limit;
  const Backoff& backoff = impl_->options.backoff;
  // Jitter only: it decides when, not what.
  static thread_local std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> part(0.5, 1.0);
  for (int n = 0;; ++n) {
    if (stop.stop_requested()) return Stopped(endpoint());
    Status status;
    {
      const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
      grpc::ClientContext context;
      Prepare(context, std::max(left, Milliseconds(1)));
      const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
      status = convert::FromGrpc(attempt(context));
    }
    if (status.ok()) return status;
    if (stop.stop_requested()) return Stopped(endpoint());
    const double wish = double(backoff.initial.count()) * std::pow(backoff.factor, std::min(n, 30));
    auto pause = std::chrono::duration_cast<Clock::duration>(
        std::min(std::chrono::duration<double, std::milli>(wish),
                 std::chrono::duration<double, std::milli>(backoff.max)) *
        part(random));
    if (const auto asked = convert::DetailsOf(status).retry_after) {
      pause = std::max<Clock::duration>(pause, *asked);
    }
    if (!convert::IsRetriable(status) || Clock::now() + pause >= deadline) {
      convert::ErrorDetails details = convert::DetailsOf(status);
      return convert::WithDetails(base::Annotate(status, endpoint()), details);
    }
    PauseFor(std::chrono::ceil<Milliseconds>(pause), stop);
  }
}

std::string NewRequestId() {
  std::random_device device;
  std::string out;
  for (int k = 0; k < 4; ++k) out += fmt::format("{:08x}", device());
  return out;
}

}  // namespace tenon::rpc
