#include "client/etcd/client.h"

#include <utility>

#include <fmt/core.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "etcd/rpc.grpc.pb.h"
#include "proto/convert/status.h"

namespace tenon::etcd {
namespace {

namespace pb = etcdserverpb;

KeyValue FromMessage(const pb::KeyValue& m) {
  return {.key = m.key(),
          .value = m.value(),
          .create_revision = m.create_revision(),
          .lease = m.lease()};
}

void ToMessage(const Operation& operation, pb::RequestOp& out) {
  switch (operation.kind) {
    case Operation::Kind::kPut: {
      pb::PutRequest& put = *out.mutable_request_put();
      put.set_key(operation.key);
      put.set_value(operation.value);
      put.set_lease(operation.lease);
      return;
    }
    case Operation::Kind::kDelete:
      out.mutable_request_delete_range()->set_key(operation.key);
      return;
    case Operation::Kind::kDeletePrefix: {
      const KeyRange range = Prefix(operation.key);
      out.mutable_request_delete_range()->set_key(range.first);
      out.mutable_request_delete_range()->set_range_end(range.end);
      return;
    }
  }
}

}  // namespace

KeyRange Prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  // "\0" is etcd's way to say: to the last key.
  if (end.empty()) return {std::string(prefix), std::string(1, '\0')};
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::string(prefix), std::move(end)};
}

struct Client::Impl {
  std::shared_ptr<rpc::Connection> keys, leases;
  ClientOptions options;

  template <class Attempt>
  Status Call(const rpc::Connection& to, std::string_view name, rpc::Milliseconds limit,
              const Attempt& attempt, std::stop_token stop) const {
    const auto begin = std::chrono::steady_clock::now();
    const Status status = to.Call(limit, attempt, std::move(stop));
    if (options.on_call) {
      options.on_call(name, status.ok(),
                      std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::steady_clock::now() - begin));
    }
    return base::Annotate(status, fmt::format("etcd {}", name));
  }
  pb::KV::Stub kv() const { return pb::KV::Stub(keys->channel()); }
  pb::Lease::Stub lease() const { return pb::Lease::Stub(leases->channel()); }
};

StatusOr<std::unique_ptr<Client>> Client::Open(const ClientOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  rpc::ConnectionOptions connection;
  connection.credentials = options.credentials;
  connection.backoff.max = rpc::Milliseconds(500);
  connection.receive_bytes_max = -1;  // Pages of values of many sizes; etcd is trusted.
  connection.attempt = options.attempt;
  ASSIGN_OR_RETURN(impl->keys, rpc::Connection::Open(options.endpoints, connection));
  connection.attempt = options.lease_attempt;
  ASSIGN_OR_RETURN(impl->leases, rpc::Connection::Open(options.endpoints, connection));
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

StatusOr<std::optional<KeyValue>> Client::Get(const std::string& key, rpc::Milliseconds limit,
                                              std::stop_token stop) const {
  ASSIGN_OR_RETURN(Page page, Range({key, ""}, {.count = 1}, limit, std::move(stop)));
  if (page.found.empty()) return std::optional<KeyValue>();
  return std::optional(std::move(page.found[0]));
}

StatusOr<Client::Page> Client::Range(const KeyRange& range, const RangeOptions& options,
                                     rpc::Milliseconds limit, std::stop_token stop) const {
  pb::RangeRequest request;
  request.set_key(range.first);
  request.set_range_end(range.end);
  request.set_limit(options.count);
  request.set_keys_only(options.keys_only);
  pb::RangeResponse answer;
  RETURN_IF_ERROR(impl_->Call(
      *impl_->keys, "Range", limit,
      [&](grpc::ClientContext& context) { return impl_->kv().Range(&context, request, &answer); },
      std::move(stop)));
  Page page;
  for (const pb::KeyValue& kv : answer.kvs()) page.found.push_back(FromMessage(kv));
  page.more = answer.more();
  return page;
}

StatusOr<TxnResult> Client::Txn(const Condition& condition,
                                const std::vector<Operation>& operations, rpc::Milliseconds limit,
                                std::stop_token stop) const {
  pb::TxnRequest request;
  pb::Compare& compare = *request.add_compare();
  compare.set_key(condition.key);
  compare.set_target(pb::Compare::CREATE);
  compare.set_result(pb::Compare::EQUAL);
  compare.set_create_revision(condition.create_revision);
  for (const Operation& operation : operations) ToMessage(operation, *request.add_success());
  request.add_failure()->mutable_request_range()->set_key(condition.key);
  pb::TxnResponse answer;
  int attempts = 0;
  const Status status = impl_->Call(
      *impl_->keys, "Txn", limit,
      [&](grpc::ClientContext& context) {
        ++attempts;
        return impl_->kv().Txn(&context, request, &answer);
      },
      std::move(stop));
  // A later attempt was refused; what became of the first one nobody knows.
  if (!status.ok() && attempts > 1) return base::Unavailable(base::Message(status));
  RETURN_IF_ERROR(status);
  TxnResult result{.succeeded = answer.succeeded(), .revision = answer.header().revision()};
  if (!result.succeeded && answer.responses_size() == 1 &&
      answer.responses(0).response_range().kvs_size() == 1) {
    result.found = FromMessage(answer.responses(0).response_range().kvs(0));
  }
  return result;
}

StatusOr<Lease> Client::Grant(std::chrono::seconds ttl, rpc::Milliseconds limit,
                              std::stop_token stop) const {
  pb::LeaseGrantRequest request;
  request.set_ttl(ttl.count());
  pb::LeaseGrantResponse answer;
  RETURN_IF_ERROR(impl_->Call(
      *impl_->leases, "LeaseGrant", limit,
      [&](grpc::ClientContext& context) {
        return impl_->lease().LeaseGrant(&context, request, &answer);
      },
      std::move(stop)));
  if (!answer.error().empty()) return base::Internal("etcd LeaseGrant: " + answer.error());
  return Lease{.id = answer.id(), .ttl = std::chrono::seconds(answer.ttl())};
}

StatusOr<std::chrono::seconds> Client::KeepAlive(std::int64_t lease, rpc::Milliseconds limit,
                                                 std::stop_token stop) const {
  pb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  pb::LeaseKeepAliveResponse answer;
  RETURN_IF_ERROR(impl_->Call(
      *impl_->leases, "LeaseKeepAlive", limit,
      [&](grpc::ClientContext& context) {
        // A stream for one question: so it goes where the others go.
        const auto stream = impl_->lease().LeaseKeepAlive(&context);
        stream->Write(request);
        stream->WritesDone();
        const bool heard = stream->Read(&answer);
        if (heard) context.TryCancel();
        const grpc::Status end = stream->Finish();
        return heard ? grpc::Status::OK : end;
      },
      std::move(stop)));
  return std::chrono::seconds(answer.ttl());
}

Status Client::Revoke(std::int64_t lease, rpc::Milliseconds limit, std::stop_token stop) const {
  pb::LeaseRevokeRequest request;
  request.set_id(lease);
  pb::LeaseRevokeResponse answer;
  return impl_->Call(
      *impl_->leases, "LeaseRevoke", limit,
      [&](grpc::ClientContext& context) {
        return impl_->lease().LeaseRevoke(&context, request, &answer);
      },
      std::move(stop));
}

}  // namespace tenon::etcd
