#include "client/rpc/registry_client.h"

#include <fmt/core.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "core/base/crc32c.h"
#include "tenon/v1/registry.grpc.pb.h"

namespace tenon::rpc {
namespace {

using Stub = v1::RegistryService::Stub;

Stub StubOf(const Connection& connection) { return Stub(connection.channel()); }

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

PackInfo FromMessage(const v1::PackInfo& m) {
  return {.name = m.name(),
          .version = m.version(),
          .address = m.address(),
          .size = m.size(),
          .file_sha256 = m.file_sha256(),
          .signer = m.signer(),
          .published_at_ms = m.published_at_ms(),
          .channels = {m.channels().begin(), m.channels().end()},
          .rules = m.rules()};
}

}  // namespace

RegistryClient::RegistryClient(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

StatusOr<PackInfo> RegistryClient::Push(const std::string& file, const std::string& file_sha256,
                                        std::stop_token stop) const {
  v1::PackInfo answer;
  const std::string id = NewRequestId();
  RETURN_IF_ERROR(connection_->Call(
      kSlowCall,
      [&](grpc::ClientContext& context) {
        answer.Clear();
        const auto stream = StubOf(*connection_).PushPack(&context, &answer);
        v1::PushPackRequest message;
        message.mutable_header()->set_request_id(id);
        message.mutable_header()->set_size(file.size());
        message.mutable_header()->set_file_sha256(file_sha256);
        bool open = stream->Write(message);
        for (std::size_t at = 0; open && at < file.size(); at += kChunkBytes) {
          const std::string_view part = std::string_view(file).substr(at, kChunkBytes);
          v1::Chunk& chunk = *message.mutable_chunk();
          chunk.set_offset(at);
          chunk.set_data(part.data(), part.size());
          chunk.set_crc32c(base::Crc32c(part));
          open = stream->Write(message);
        }
        stream->WritesDone();
        return stream->Finish();
      },
      stop));
  return FromMessage(answer);
}

StatusOr<std::vector<PackInfo>> RegistryClient::List(const std::string& name) const {
  v1::ListPacksRequest request;
  request.set_name(name);
  v1::ListPacksResponse answer;
  RETURN_IF_ERROR(connection_->Call(kQuickCall, [&](grpc::ClientContext& context) {
    return StubOf(*connection_).ListPacks(&context, request, &answer);
  }));
  std::vector<PackInfo> out;
  for (const v1::PackInfo& info : answer.packs()) out.push_back(FromMessage(info));
  return out;
}

StatusOr<PackInfo> RegistryClient::SetChannel(const std::string& name, const std::string& channel,
                                              const std::string& version) const {
  v1::SetChannelRequest request;
  request.set_name(name);
  request.set_channel(channel);
  request.set_version(version);
  v1::PackInfo answer;
  RETURN_IF_ERROR(connection_->Call(kQuickCall, [&](grpc::ClientContext& context) {
    return StubOf(*connection_).SetChannel(&context, request, &answer);
  }));
  return FromMessage(answer);
}

StatusOr<RegistryClient::Pulled> RegistryClient::Pull(
    const Wanted& wanted, std::uint64_t limit_bytes,
    const std::function<Status(const PackInfo&)>& accept, std::stop_token stop) const {
  Pulled out;
  Status foreign = OkStatus();
  const auto take_info = [&](const PackInfo& info) -> Status {
    // The name or channel may point elsewhere than before the stream broke.
    if (!out.file.empty() && info.file_sha256 != out.info.file_sha256) {
      return base::DataLoss(fmt::format("{}: {} was changed while it was fetched; fetch it again",
                                        connection_->endpoint(), wanted.name));
    }
    if (info.size > limit_bytes) {
      return base::ResourceExhausted(fmt::format("{}: {}@{} has {} bytes, the limit is {}",
                                                 connection_->endpoint(), info.name, info.version,
                                                 info.size, limit_bytes));
    }
    out.info = info;
    return accept(info);
  };
  const auto take_chunk = [&](const v1::Chunk& chunk) -> Status {
    if (chunk.offset() != out.file.size() || base::Crc32c(chunk.data()) != chunk.crc32c() ||
        out.file.size() + chunk.data().size() > out.info.size) {
      return base::DataLoss(fmt::format("{}: {}: the bytes were damaged on the way",
                                        connection_->endpoint(), wanted.name));
    }
    out.file += chunk.data();
    return OkStatus();
  };
  RETURN_IF_ERROR(connection_->Call(
      kSlowCall,
      [&](grpc::ClientContext& context) {
        v1::PullPackRequest request;
        request.set_name(wanted.name);
        if (!wanted.version.empty()) request.set_version(wanted.version);
        if (!wanted.channel.empty()) request.set_channel(wanted.channel);
        request.set_offset(out.file.size());
        const auto stream = StubOf(*connection_).PullPack(&context, request);
        v1::PullPackResponse message;
        while (foreign.ok() && stream->Read(&message)) {
          foreign = message.has_info() ? take_info(FromMessage(message.info()))
                                       : take_chunk(message.chunk());
        }
        if (foreign.ok()) return stream->Finish();
        context.TryCancel();
        stream->Finish();
        return grpc::Status::OK;
      },
      stop));
  RETURN_IF_ERROR(foreign);
  if (out.info.name.empty() || out.file.size() != out.info.size) {
    return base::DataLoss(fmt::format("{}: {} ended early", connection_->endpoint(), wanted.name));
  }
  return out;
}

}  // namespace tenon::rpc
