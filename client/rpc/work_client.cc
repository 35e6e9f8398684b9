#include "client/rpc/work_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "tenon/v1/work.grpc.pb.h"

namespace tenon::rpc {
namespace {

using Stub = v1::WorkService::Stub;

Stub StubOf(const Connection& connection) { return Stub(connection.channel()); }

}  // namespace

WorkClient::WorkClient(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

StatusOr<convert::LeaseResponse> WorkClient::Lease(convert::LeaseRequest lease,
                                                   std::stop_token stop) const {
  if (lease.request_id.empty()) lease.request_id = NewRequestId();
  v1::LeaseRequest request;
  convert::ToMessage(lease, request);
  v1::LeaseResponse answer;
  RETURN_IF_ERROR(connection_->Call(
      lease.wait + kQuickCall,
      [&](grpc::ClientContext& context) {
        return StubOf(*connection_).Lease(&context, request, &answer);
      },
      stop));
  return convert::FromMessage(answer);
}

StatusOr<convert::HeartbeatResponse> WorkClient::Heartbeat(
    const convert::Heartbeat& heartbeat) const {
  v1::HeartbeatRequest request;
  convert::ToMessage(heartbeat, request);
  v1::HeartbeatResponse answer;
  RETURN_IF_ERROR(connection_->Call(Milliseconds(2000), [&](grpc::ClientContext& context) {
    return StubOf(*connection_).Heartbeat(&context, request, &answer);
  }));
  return convert::FromMessage(answer);
}

StatusOr<bool> WorkClient::Complete(const convert::Complete& complete, std::stop_token stop,
                                    Milliseconds limit) const {
  v1::CompleteRequest request;
  convert::ToMessage(complete, request);
  v1::CompleteResponse answer;
  RETURN_IF_ERROR(connection_->Call(
      limit,
      [&](grpc::ClientContext& context) {
        return StubOf(*connection_).Complete(&context, request, &answer);
      },
      stop));
  return answer.was_needed();
}

Status WorkClient::Release(const convert::Release& release, std::stop_token stop,
                           Milliseconds limit) const {
  v1::ReleaseRequest request;
  convert::ToMessage(release, request);
  v1::ReleaseResponse answer;
  return connection_->Call(
      limit,
      [&](grpc::ClientContext& context) {
        return StubOf(*connection_).Release(&context, request, &answer);
      },
      stop);
}

}  // namespace tenon::rpc
