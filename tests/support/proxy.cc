// Two kinds of calls. One of one message is read, then delivered by a Delivery of its own, whose
// answer goes back; a repetition is a second Delivery whose answer nobody hears. A stream is pumped
// both ways, a message at a time, so that flow control passes through.
#include "tests/support/proxy.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <random>

#include <google/protobuf/descriptor.h>
#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "core/base/check.h"
#include "tenon/v1/jobs.pb.h"
#include "tenon/v1/registry.pb.h"
#include "tenon/v1/store.pb.h"
#include "tenon/v1/work.pb.h"

namespace tenon::testing {
namespace {

using grpc::ByteBuffer;
using std::chrono::milliseconds;
using std::chrono::system_clock;

// What befalls a message.
struct Fate {
  bool lose = false, lose_answer = false, repeat = false, cut = false;
  milliseconds delay{0};
};

grpc::Status Broken() {
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the network broke the call");
}

bool IsStream(const std::string& method) {
  // The descriptors are linked only where something of their files is used.
  static const bool linked = [] {
    v1::Job::descriptor();
    v1::PackInfo::descriptor();
    v1::Run::descriptor();
    v1::Lease::descriptor();
    return true;
  }();
  CHECK(linked);
  std::string name = method.substr(method.starts_with('/') ? 1 : 0);
  std::replace(name.begin(), name.end(), '/', '.');
  const auto* found = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  return found == nullptr || found->client_streaming() || found->server_streaming();
}

}  // namespace

struct Proxy::Impl final : grpc::CallbackGenericService {
  Impl(unsigned seed, const ProxyFaults& f) : faults(f), random(seed) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  Fate Draw(bool stream) {
    const std::lock_guard lock(mutex);
    const auto hit = [&](int of_thousand) { return int(random() % 1000) < of_thousand; };
    Fate fate;
    if (stream) {
      fate.cut = hit(faults.cut);
    } else {
      fate.lose = hit(faults.lose);
      fate.lose_answer = !fate.lose && hit(faults.lose_answer);
      fate.repeat = !fate.lose && hit(faults.repeat);
    }
    if (hit(faults.delay)) fate.delay = milliseconds(1 + random() % faults.delay_max.count());
    if (fate.lose) fate.delay = milliseconds(0);
    counts.lost += fate.lose;
    counts.answers_lost += fate.lose_answer;
    counts.repeated += fate.repeat;
    counts.cut += fate.cut;
    counts.delayed += fate.delay.count() > 0;
    counts.passed +=
        !fate.lose && !fate.lose_answer && !fate.repeat && !fate.cut && fate.delay.count() == 0;
    return fate;
  }
  std::shared_ptr<grpc::GenericStub> Stub() {
    const std::lock_guard lock(mutex);
    return stub;
  }
  void Born() {
    const std::lock_guard lock(mutex);
    ++alive;
  }
  void Died() {
    const std::lock_guard lock(mutex);
    --alive;
    changed.notify_all();
  }
  // The caller's deadline and token.
  static void Prepare(const grpc::GenericCallbackServerContext& from, grpc::ClientContext& to) {
    to.set_deadline(from.deadline());
    for (const auto& [name, value] : from.client_metadata()) {
      if (name == "authorization") to.AddMetadata("authorization", {value.data(), value.size()});
    }
  }

  const ProxyFaults faults;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::mt19937 random;
  ProxyCounts counts;
  std::shared_ptr<grpc::GenericStub> stub;
  int alive = 0;  // Reactors and deliveries.
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

namespace {

// A call of one message on its way to the server. Deletes itself.
template <class Impl>
class Delivery {
 public:
  using Done = std::function<void(const grpc::Status& status, const ByteBuffer& answer)>;

  static void Send(Impl& proxy, const grpc::GenericCallbackServerContext& from,
                   const ByteBuffer& message, milliseconds delay, Done done) {
    auto* one = new Delivery(proxy, from, message, std::move(done));
    if (delay.count() == 0) return one->Start();
    one->alarm_.Set(system_clock::now() + delay, [one](bool) { one->Start(); });
  }

 private:
  Delivery(Impl& proxy, const grpc::GenericCallbackServerContext& from, const ByteBuffer& message,
           Done done)
      : proxy_(proxy),
        stub_(proxy.Stub()),
        method_(from.method()),
        message_(message),
        done_(std::move(done)) {
    proxy_.Born();
    Impl::Prepare(from, context_);
  }
  void Start() {
    if (!stub_) return End(Broken());
    stub_->UnaryCall(&context_, method_, {}, &message_, &answer_,
                     [this](const grpc::Status& status) { End(status); });
  }
  void End(const grpc::Status& status) {
    if (done_) done_(status, answer_);
    Impl& proxy = proxy_;
    delete this;
    proxy.Died();
  }

  Impl& proxy_;
  const std::shared_ptr<grpc::GenericStub> stub_;
  const std::string method_;
  ByteBuffer message_, answer_;
  const Done done_;
  grpc::ClientContext context_;
  grpc::Alarm alarm_;
};

template <class Impl>
class UnaryCall final : public grpc::ServerGenericBidiReactor {
 public:
  UnaryCall(Impl& proxy, grpc::GenericCallbackServerContext* context)
      : proxy_(proxy), context_(context), fate_(proxy.Draw(false)) {
    proxy_.Born();
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok || fate_.lose) return Finish(Broken());
    if (fate_.repeat) {
      Delivery<Impl>::Send(proxy_, *context_, message_, fate_.delay + milliseconds(100), nullptr);
    }
    Delivery<Impl>::Send(proxy_, *context_, message_, fate_.delay,
                         [this](const grpc::Status& status, const ByteBuffer& answer) {
                           if (fate_.lose_answer) return Finish(Broken());
                           if (!status.ok()) return Finish(status);
                           answer_ = answer;
                           StartWriteAndFinish(&answer_, grpc::WriteOptions(), status);
                         });
  }
  void OnDone() override {
    Impl& proxy = proxy_;
    delete this;
    proxy.Died();
  }

 private:
  Impl& proxy_;
  grpc::GenericCallbackServerContext* const context_;
  const Fate fate_;
  ByteBuffer message_, answer_;
};

// The two sides of a stream are Done one after the other; the last one ends it.
template <class Impl>
class StreamCall final : public grpc::ServerGenericBidiReactor {
 public:
  StreamCall(Impl& proxy, grpc::GenericCallbackServerContext* context)
      : proxy_(proxy), stub_(proxy.Stub()), upstream_(*this) {
    proxy_.Born();
    if (!stub_) {
      sides_ = 1;
      finished_ = true;
      Finish(Broken());
      return;
    }
    Impl::Prepare(*context, to_server_);
    stub_->PrepareBidiStreamingCall(&to_server_, context->method(), {}, &upstream_);
    upstream_.AddHold();  // Writes come from outside of its reactions.
    upstream_.StartRead(&down_);
    upstream_.StartCall();
    StartRead(&up_);
  }

  void OnReadDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    if (!ok) {
      upstream_.StartWritesDone();
      return Close();
    }
    const Fate fate = proxy_.Draw(true);
    if (fate.cut) return Cut();
    if (fate.delay.count() == 0) return upstream_.StartWrite(&up_);
    alarm_.Set(system_clock::now() + fate.delay, [this](bool) {
      const std::lock_guard late(mutex_);
      waits_ = false;
      if (open_) upstream_.StartWrite(&up_);
      if (remove_hold_) Close();
    });
    waits_ = true;
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (end_) return Finish(*end_);
    if (!ok) return Abandon();
    upstream_.StartRead(&down_);
  }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    Abandon();
  }
  void OnDone() override { SideDone(); }

 private:
  class Upstream final : public grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
   public:
    explicit Upstream(StreamCall& call) : call_(call) {}
    void OnWriteDone(bool ok) override {
      const std::lock_guard lock(call_.mutex_);
      if (!call_.open_) return;
      if (ok) {
        call_.StartRead(&call_.up_);
      } else {
        call_.Close();
      }
    }
    void OnReadDone(bool ok) override {
      const std::lock_guard lock(call_.mutex_);
      if (!ok || call_.finished_) return call_.Close();
      if (call_.proxy_.Draw(true).cut) return call_.Cut();
      call_.writing_ = true;
      call_.StartWrite(&call_.down_);
    }
    void OnDone(const grpc::Status& status) override {
      {
        const std::lock_guard lock(call_.mutex_);
        call_.End(status);
      }
      call_.SideDone();
    }

   private:
    StreamCall& call_;
  };

  // With the lock held, all of these:
  void End(const grpc::Status& status) {
    if (finished_) return;
    finished_ = true;
    if (writing_) {
      end_ = status;
    } else {
      Finish(status);
    }
  }
  // Nothing more goes to the server.
  void Close() {
    open_ = false;
    if (waits_) {
      remove_hold_ = true;  // By the alarm.
      return;
    }
    if (held_) upstream_.RemoveHold();
    held_ = false;
  }
  void Abandon() {
    to_server_.TryCancel();
    Close();
  }
  void Cut() {
    End(Broken());
    Abandon();
  }

  void SideDone() {
    {
      const std::lock_guard lock(mutex_);
      if (--sides_ > 0) return;
    }
    Impl& proxy = proxy_;
    delete this;
    proxy.Died();
  }

  Impl& proxy_;
  const std::shared_ptr<grpc::GenericStub> stub_;
  std::mutex mutex_;
  Upstream upstream_;
  grpc::ClientContext to_server_;
  grpc::Alarm alarm_;
  ByteBuffer up_, down_;
  int sides_ = 2;
  bool open_ = true, held_ = true, waits_ = false, remove_hold_ = false;
  bool writing_ = false, finished_ = false;
  std::optional<grpc::Status> end_;  // Once the write under way is done.
};

}  // namespace

grpc::ServerGenericBidiReactor* Proxy::Impl::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (IsStream(context->method())) return new StreamCall<Impl>(*this, context);
  return new UnaryCall<Impl>(*this, context);
}

Proxy::Proxy(unsigned seed, const ProxyFaults& faults)
    : impl_(std::make_unique<Impl>(seed, faults)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &impl_->port);
  builder.RegisterCallbackGenericService(impl_.get());
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  impl_->server = builder.BuildAndStart();
  CHECK(impl_->server != nullptr && impl_->port != 0);
}

Proxy::~Proxy() {
  impl_->server->Shutdown(system_clock::now());
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->alive == 0; });
}

std::string Proxy::endpoint() const { return "127.0.0.1:" + std::to_string(impl_->port); }

void Proxy::ForwardTo(const std::string& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  auto stub = std::make_shared<grpc::GenericStub>(
      grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments));
  const std::lock_guard lock(impl_->mutex);
  CHECK(impl_->stub == nullptr);
  impl_->stub = std::move(stub);
}

ProxyCounts Proxy::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

}  // namespace tenon::testing
