#include "client/rpc/connection.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <list>
#include <random>
#include <vector>

#include <fmt/core.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "core/base/mutex.h"
#include "proto/convert/status.h"

namespace tenon::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kEndpointsMax = 16;
constexpr Milliseconds kKeepaliveOfSeveral{10'000};

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
  return number >= 1 && number <= 65535 && text.find_first_of("/ ") == std::string_view::npos;
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& c) {
  if (!c.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = c.root_certificates;
  options.pem_cert_chain = c.certificate;
  options.pem_private_key = c.key;
  return grpc::SslCredentials(options);
}

Status Stopped(const std::string& endpoint) {
  return absl::CancelledError(fmt::format("{}: the call was given up", endpoint));
}

}  // namespace

struct Connection::Impl {
  struct Target {
    std::string endpoint;
    std::shared_ptr<grpc::Channel> channel;
  };
  std::string endpoints;  // As given.
  ConnectionOptions options;
  std::vector<Target> targets;
  std::atomic<std::size_t> current{0};

  // Attempts under way, by target: those at an endpoint that does not serve any more are cancelled.
  struct Flight {
    grpc::ClientContext* context;
    std::size_t target;
    bool moved = false;
  };
  base::Mutex mutex;
  std::list<Flight> flights ABSL_GUARDED_BY(mutex);

  bool several() const { return targets.size() > 1; }
  void Move(std::size_t from, const Status& why);
};

// Unless somebody else has moved already.
void Connection::Impl::Move(std::size_t from, const Status& why) {
  std::size_t to = (from + 1) % targets.size();
  const convert::ErrorDetails details = convert::DetailsOf(why);
  if (const auto leader = details.metadata.find(kLeaderKey);
      details.reason == kNotLeader && leader != details.metadata.end()) {
    for (std::size_t k = 0; k < targets.size(); ++k) {
      if (targets[k].endpoint == leader->second && k != from) to = k;
    }
  }
  const base::MutexLock lock(mutex);
  if (!current.compare_exchange_strong(from, to)) return;
  for (Flight& flight : flights) {
    if (flight.target != from) continue;
    flight.moved = true;
    flight.context->TryCancel();
  }
}

StatusOr<std::shared_ptr<Connection>> Connection::Open(const std::string& endpoints,
                                                       const ConnectionOptions& options) {
  const Credentials& c = options.credentials;
  auto impl = std::make_unique<Impl>();
  impl->endpoints = endpoints;
  impl->options = options;
  for (std::size_t at = 0; at <= endpoints.size();) {
    const std::size_t comma = std::min(endpoints.find(',', at), endpoints.size());
    Impl::Target target{.endpoint = endpoints.substr(at, comma - at)};
    at = comma + 1;
    if (!IsEndpoint(target.endpoint)) {
      return base::InvalidArgument(
          fmt::format("'{}' is no address; give HOST:PORT or unix:PATH", target.endpoint));
    }
    if (!c.token.empty() && !c.tls && !IsLoopback(target.endpoint)) {
      return base::InvalidArgument(fmt::format(
          "{}: a token over an open connection can be read by others; use TLS", target.endpoint));
    }
    impl->targets.push_back(std::move(target));
  }
  if (impl->targets.size() > kEndpointsMax) {
    return base::InvalidArgument(fmt::format("{}: {} addresses, {} at most", endpoints,
                                             impl->targets.size(), kEndpointsMax));
  }
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(options.receive_bytes_max);
  args.SetMaxSendMessageSize(kMessageBytesMax);
  // A stopped process still has open connections: who has somewhere else to go asks sooner.
  const Milliseconds keepalive =
      impl->several() ? std::min(options.keepalive, kKeepaliveOfSeveral) : options.keepalive;
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(keepalive.count()));
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, impl->several() ? 5'000 : 10'000);
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
  for (Impl::Target& target : impl->targets) {
    target.channel = grpc::CreateCustomChannel(target.endpoint, ChannelCredentialsOf(c), args);
  }
  return std::shared_ptr<Connection>(new Connection(std::move(impl)));
}

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

const std::string& Connection::endpoint() const { return impl_->endpoints; }
const std::shared_ptr<grpc::Channel>& Connection::channel() const {
  return impl_->targets[impl_->current].channel;
}

void Connection::Prepare(grpc::ClientContext& context, Milliseconds limit) const {
  if (limit > Milliseconds(0)) context.set_deadline(std::chrono::system_clock::now() + limit);
  const std::string& token = impl_->options.credentials.token;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

void Connection::PauseFor(Milliseconds time, const std::stop_token& stop) const {
  const Clock::time_point end = Clock::now() + time;
  if (channel()->GetState(true) == GRPC_CHANNEL_READY) return base::SleepFor(time, stop);
  while (!stop.stop_requested() && Clock::now() < end) {
    const auto step = std::min<Clock::duration>(end - Clock::now(), Milliseconds(100));
    const auto until = std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(step);
    if (channel()->WaitForConnected(until)) return;
  }
}

Status Connection::Try(Milliseconds limit, const Attempt& attempt,
                       const std::stop_token& stop) const {
  Impl& impl = *impl_;
  Milliseconds mine = limit;
  if (impl.options.attempt > Milliseconds(0)) {
    mine = std::min(limit, impl.options.attempt);
  } else if (impl.several() && limit <= kQuickCall) {
    mine = limit / 2;
  }
  grpc::ClientContext context;
  Prepare(context, std::max(mine, Milliseconds(1)));
  const std::size_t target = impl.current;
  std::list<Impl::Flight>::iterator flight;
  {
    const base::MutexLock lock(impl.mutex);
    flight = impl.flights.insert(impl.flights.end(), {.context = &context, .target = target});
  }
  Status status;
  {
    const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
    status = convert::FromGrpc(attempt(context));
  }
  bool moved = false;
  {
    const base::MutexLock lock(impl.mutex);
    moved = flight->moved;
    impl.flights.erase(flight);
  }
  if (status.ok()) return status;
  const bool late = absl::IsDeadlineExceeded(status) && mine < limit;
  if (moved && absl::IsCancelled(status)) {
    status = base::Unavailable("another endpoint serves now");
  } else if (late) {
    status = base::Unavailable("no answer in time: " + base::Message(status));
  }
  if (impl.several() && absl::IsUnavailable(status)) impl.Move(target, status);
  const convert::ErrorDetails details = convert::DetailsOf(status);
  return convert::WithDetails(base::Annotate(status, impl.targets[target].endpoint), details);
}

Status Connection::Call(Milliseconds limit, const Attempt& attempt, std::stop_token stop) const {
  const Clock::time_point deadline = Clock::now() + limit;
  const Backoff& backoff = impl_->options.backoff;
  // Jitter only: it decides when, not what.
  static thread_local std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> part(0.5, 1.0);
  const int around = static_cast<int>(impl_->targets.size());
  Status last;
  for (int n = 0;; ++n) {
    if (stop.stop_requested()) return Stopped(endpoint());
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    const Status status = Try(left, attempt, stop);
    if (status.ok()) return status;
    if (stop.stop_requested()) return Stopped(endpoint());
    // That there was no time left for another attempt says less than why the last one failed.
    if (absl::IsDeadlineExceeded(status) && !last.ok()) return last;
    // All endpoints are tried before there is a pause.
    const int round = n / around;
    const double wish = n % around < around - 1 ? 0
                                                : double(backoff.initial.count()) *
                                                      std::pow(backoff.factor, std::min(round, 30));
    auto pause = std::chrono::duration_cast<Clock::duration>(
        std::min(std::chrono::duration<double, std::milli>(wish),
                 std::chrono::duration<double, std::milli>(backoff.max)) *
        part(random));
    if (const auto asked = convert::DetailsOf(status).retry_after) {
      pause = std::max<Clock::duration>(pause, *asked);
    }
    if (!convert::IsRetriable(status) || Clock::now() + pause >= deadline) return status;
    last = status;
    if (pause > Clock::duration(0)) PauseFor(std::chrono::ceil<Milliseconds>(pause), stop);
  }
}

std::string WithPort(const std::string& address, int port) {
  if (!address.ends_with(":0")) return address;
  return fmt::format("{}{}", address.substr(0, address.size() - 1), port);
}

std::string NewRequestId() {
  std::random_device device;
  std::string out;
  for (int k = 0; k < 4; ++k) out += fmt::format("{:08x}", device());
  return out;
}

}  // namespace tenon::rpc
