// Messages in, messages out. Nobody waits in a thread here: who waits for leases or changes is
// called back.
#include "coordinator/service.h"

#include <fmt/core.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "client/rpc/connection.h"
#include "client/rpc/server_limits.h"
#include "core/base/mutex.h"
#include "proto/convert/status.h"
#include "tenon/v1/jobs.grpc.pb.h"
#include "tenon/v1/work.grpc.pb.h"

namespace tenon::coordinator {
namespace {

using convert::FromMessage;
using convert::ToMessage;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr std::chrono::milliseconds kWatchPause{500};
constexpr int kThreadsMax = 256;

ServerUnaryReactor* End(CallbackServerContext* context, const Status& status) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(convert::ToGrpc(status));
  return reactor;
}
ServerUnaryReactor* End(CallbackServerContext* context, const StatusOr<convert::Job>& job,
                        v1::Job* answer) {
  if (job.ok()) ToMessage(*job, *answer);
  return End(context, job.status());
}

// What is asked for, if this coordinator may answer.
template <class Message>
auto Asked(const Coordinator& coordinator, const Message& request)
    -> decltype(FromMessage(request)) {
  RETURN_IF_ERROR(coordinator.Leads());
  return FromMessage(request);
}

// Reactors: gRPC calls one back in one thread after another, which ThreadSanitizer cannot see to be
// in order, and OnCancel at any time. So each of these calls takes the reactor's lock, the last one
// too: then whoever called before has given it back, and the object may go.

// Sends a job whenever it has changed. Lives until gRPC is done with it.
class WatchReactor : public grpc::ServerWriteReactor<v1::Job> {
 public:
  WatchReactor(Coordinator& coordinator, std::string id)
      : coordinator_(coordinator), id_(std::move(id)) {
    if (const Status s = coordinator.Leads(); !s.ok()) {
      const base::MutexLock lock(mutex_);
      Finish(convert::ToGrpc(s));
    } else {
      Wait({});
    }
  }
  void OnWriteDone(bool ok) override {
    {
      const base::MutexLock lock(mutex_);
      if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the caller has gone"));
      if (ended_) return Finish(grpc::Status::OK);
    }
    Wait(std::chrono::steady_clock::now() + kWatchPause);
  }
  void OnCancel() override {
    const base::MutexLock lock(mutex_);
    waiter_->gone = true;
  }
  void OnDone() override {
    { const base::MutexLock lock(mutex_); }
    delete this;
  }

 private:
  // `this` lives at least until Finish, which only what is called back here or OnWriteDone calls.
  // Without the lock, as it may be called back at once.
  void Wait(board::Now::Monotonic not_before) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::uint64_t seen = 0;
    {
      const base::MutexLock lock(mutex_);
      seen = revision_;
    }
    coordinator_.Watch(id_, seen, not_before, waiter_, [this](StatusOr<convert::Job> job) {
      const base::MutexLock lock(mutex_);
      if (!job.ok()) return Finish(convert::ToGrpc(job.status()));
      revision_ = job->revision;
      ended_ = convert::HasEnded(job->state);
      message_.Clear();
      ToMessage(*job, message_);
      StartWrite(&message_);
    });
  }

  Coordinator& coordinator_;
  const std::string id_;
  const std::shared_ptr<Coordinator::Waiter> waiter_ = std::make_shared<Coordinator::Waiter>();
  base::Mutex mutex_;
  std::uint64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  v1::Job message_ ABSL_GUARDED_BY(mutex_);
};

class Jobs : public v1::JobService::CallbackService {
 public:
  explicit Jobs(Coordinator& coordinator) : coordinator_(coordinator) {}

  ServerUnaryReactor* SubmitJob(CallbackServerContext* context, const v1::SubmitJobRequest* request,
                                v1::Job* answer) override {
    auto value = Asked(coordinator_, *request);
    if (!value.ok()) return End(context, value.status());
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    coordinator_.Submit(*std::move(value), [reactor, answer](const StatusOr<convert::Job>& job) {
      if (job.ok()) ToMessage(*job, *answer);
      reactor->Finish(convert::ToGrpc(job.status()));
    });
    return reactor;
  }
  ServerUnaryReactor* GetJob(CallbackServerContext* context, const v1::GetJobRequest* request,
                             v1::Job* answer) override {
    if (const Status s = coordinator_.Leads(); !s.ok()) return End(context, s);
    return End(context, coordinator_.Get(request->id()), answer);
  }
  ServerUnaryReactor* ListJobs(CallbackServerContext* context, const v1::ListJobsRequest* request,
                               v1::ListJobsResponse* answer) override {
    const auto value = Asked(coordinator_, *request);
    if (!value.ok()) return End(context, value.status());
    const auto page = coordinator_.List(*value);
    if (!page.ok()) return End(context, page.status());
    std::size_t bytes = 0;
    for (const convert::Job& job : page->jobs) {
      v1::Job message;
      ToMessage(job, message);
      // A page of many large universes would not fit into a message.
      bytes += message.ByteSizeLong();
      if (bytes > std::size_t(rpc::kMessageBytesMax) / 2 && answer->jobs_size() > 0) {
        answer->set_next_page_token(answer->jobs(answer->jobs_size() - 1).id());
        return End(context, OkStatus());
      }
      *answer->add_jobs() = std::move(message);
    }
    answer->set_next_page_token(page->next_page_token);
    return End(context, OkStatus());
  }
  ServerUnaryReactor* ControlJob(CallbackServerContext* context,
                                 const v1::ControlJobRequest* request, v1::Job* answer) override {
    const auto value = Asked(coordinator_, *request);
    if (!value.ok()) return End(context, value.status());
    return End(context, coordinator_.Control(*value), answer);
  }
  grpc::ServerWriteReactor<v1::Job>* WatchJob(CallbackServerContext*,
                                              const v1::WatchJobRequest* request) override {
    return new WatchReactor(coordinator_, request->id());
  }

 private:
  Coordinator& coordinator_;
};

// Answers a lease call when there is something to lease. Lives until gRPC is done with it.
class LeaseReactor : public ServerUnaryReactor {
 public:
  void Start(Coordinator& coordinator, const convert::LeaseRequest& request,
             v1::LeaseResponse* answer) {
    std::shared_ptr<Coordinator::Waiter> waiter;
    {
      const base::MutexLock lock(mutex_);
      waiter = waiter_;
    }
    coordinator.Lease(request, waiter, [this, answer](const convert::LeaseResponse& response) {
      const base::MutexLock lock(mutex_);
      ToMessage(response, *answer);
      Finish(grpc::Status::OK);
    });
  }
  void OnCancel() override {
    const base::MutexLock lock(mutex_);
    waiter_->gone = true;
  }
  void OnDone() override {
    { const base::MutexLock lock(mutex_); }
    delete this;
  }

 private:
  base::Mutex mutex_;
  const std::shared_ptr<Coordinator::Waiter> waiter_ = std::make_shared<Coordinator::Waiter>();
};

class Work : public v1::WorkService::CallbackService {
 public:
  explicit Work(Coordinator& coordinator) : coordinator_(coordinator) {}

  ServerUnaryReactor* Lease(CallbackServerContext* context, const v1::LeaseRequest* request,
                            v1::LeaseResponse* answer) override {
    const auto value = Asked(coordinator_, *request);
    if (!value.ok()) return End(context, value.status());
    auto* reactor = new LeaseReactor;
    reactor->Start(coordinator_, *value, answer);
    return reactor;
  }
  ServerUnaryReactor* Heartbeat(CallbackServerContext* context, const v1::HeartbeatRequest* request,
                                v1::HeartbeatResponse* answer) override {
    const auto value = Asked(coordinator_, *request);
    if (!value.ok()) return End(context, value.status());
    ToMessage(coordinator_.Heartbeat(*value), *answer);
    return End(context, OkStatus());
  }
  ServerUnaryReactor* Complete(CallbackServerContext* context, const v1::CompleteRequest* request,
                               v1::CompleteResponse* answer) override {
    const auto value = Asked(coordinator_, *request);
    if (!value.ok()) return End(context, value.status());
    const auto needed = coordinator_.Complete(*value);
    if (needed.ok()) answer->set_was_needed(*needed);
    return End(context, needed.status());
  }
  ServerUnaryReactor* Release(CallbackServerContext* context, const v1::ReleaseRequest* request,
                              v1::ReleaseResponse*) override {
    const auto value = Asked(coordinator_, *request);
    if (!value.ok()) return End(context, value.status());
    return End(context, coordinator_.Release(*value));
  }

 private:
  Coordinator& coordinator_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Coordinator& coordinator) {
  std::vector<std::unique_ptr<grpc::Service>> out;
  out.push_back(std::make_unique<Jobs>(coordinator));
  out.push_back(std::make_unique<Work>(coordinator));
  return out;
}

void Listen(grpc::ServerBuilder& builder, const std::string& listen,
            const std::shared_ptr<grpc::ServerCredentials>& credentials, int& port) {
  rpc::SetServerLimits(builder, kThreadsMax);
  builder.AddListeningPort(listen, credentials ? credentials : grpc::InsecureServerCredentials(),
                           &port);
}

Status CannotListen(const std::string& listen) {
  return base::Unavailable(
      fmt::format("{}: cannot listen there; give another address with a free port", listen));
}

Status ServeGrpc(const ServeOptions& options, Coordinator& coordinator, std::stop_token stop) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const auto services = MakeServices(coordinator);
  grpc::ServerBuilder builder;
  for (const auto& service : services) builder.RegisterService(service.get());
  int port = 0;
  Listen(builder, options.listen, options.credentials, port);
  if (options.customize) RETURN_IF_ERROR(options.customize(builder));
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return CannotListen(options.listen);
  if (options.on_listening) options.on_listening(port);
  base::AwaitStop(stop);
  server->GetHealthCheckService()->SetServingStatus(false);
  coordinator.Stop();
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  server->Wait();
  return OkStatus();
}

}  // namespace tenon::coordinator
