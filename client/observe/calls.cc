#include "client/observe/calls.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>

#include "core/base/status.h"

namespace tenon::observe {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

class Watcher final : public Interceptor {
 public:
  Watcher(std::string method, const OnCall& on_call)
      : method_(std::move(method)), on_call_(on_call) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
      // The codes of gRPC are those of absl.
      const std::string code(
          absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code())));
      on_call_(method_, code, took.count());
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
  const OnCall& on_call_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(OnCall on_call) : on_call_(std::move(on_call)) {}
  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    std::string method = info->method();
    if (method.starts_with('/')) method.erase(0, 1);
    return new Watcher(std::move(method), on_call_);
  }

 private:
  const OnCall on_call_;
};

}  // namespace

void EnableHealthAndReflection() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

void ObserveCalls(grpc::ServerBuilder& builder, OnCall on_call) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
  creators.push_back(std::make_unique<Factory>(std::move(on_call)));
  builder.experimental().SetInterceptorCreators(std::move(creators));
}

}  // namespace tenon::observe
