#include "coordinator/standby/service.h"

#include <fmt/core.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "coordinator/etcd/leadership.h"
#include "coordinator/service.h"
#include "core/base/mutex.h"
#include "proto/convert/status.h"

namespace tenon::coordinator {
namespace {

// Any method of any service.
class Refusal final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    class Reactor final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Reactor(const Status& status) { Finish(convert::ToGrpc(status)); }
      void OnDone() override { delete this; }
    };
    const base::MutexLock lock(mutex_);
    return new Reactor(NotLeader(leader_));
  }
  void SetLeader(const std::optional<std::string>& leader) {
    const base::MutexLock lock(mutex_);
    leader_ = leader;
  }

 private:
  base::Mutex mutex_;
  std::optional<std::string> leader_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct Standby::Impl {
  Refusal refusal;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

StatusOr<std::unique_ptr<Standby>> Standby::Start(
    const std::string& listen, const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  auto impl = std::make_unique<Impl>();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  Listen(builder, listen, credentials, impl->port);
  builder.RegisterCallbackGenericService(&impl->refusal);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || impl->port == 0) return CannotListen(listen);
  impl->server->GetHealthCheckService()->SetServingStatus(false);
  return std::unique_ptr<Standby>(new Standby(std::move(impl)));
}

Standby::Standby(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Standby::~Standby() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

int Standby::port() const { return impl_->port; }

void Standby::SetLeader(const std::optional<std::string>& leader) {
  impl_->refusal.SetLeader(leader);
}

}  // namespace tenon::coordinator
