#include "client/rpc/store_client.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "core/base/crc32c.h"
#include "tenon/v1/store.grpc.pb.h"

namespace tenon::rpc {
namespace {

using Stub = v1::StoreService::Stub;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

Status Damaged(const Connection& connection, std::string_view what) {
  return base::DataLoss(fmt::format("{}: {} was damaged on its way", connection.endpoint(), what));
}

}  // namespace

StoreClient::StoreClient(std::shared_ptr<Connection> connection, Milliseconds patience)
    : connection_(std::move(connection)), patience_(patience) {}

Status StoreClient::ScanRuns(const BucketRange& range, const VisitRun& visit,
                             std::stop_token stop) const {
  Stub stub(connection_->channel());
  v1::ScanRunsRequest request;
  request.set_table(range.table);
  request.set_bucket_bits(range.bucket_bits);
  request.set_first_bucket(range.first);
  request.set_end_bucket(range.end);
  using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  std::optional<Place> last;  // What was visited.
  Status foreign = OkStatus();
  const auto attempt = [&](grpc::ClientContext& context, bool& heard) {
    if (last) request.set_first_bucket(std::get<0>(*last));
    const auto stream = stub.ScanRuns(&context, request);
    v1::Run message;
    Run run;
    while (stream->Read(&message)) {
      const Place place{message.bucket(), message.shard(), message.part()};
      if (last && place <= *last) continue;
      heard = true;
      run.table = message.table();
      run.bucket_bits = message.bucket_bits();
      std::tie(run.bucket, run.shard, run.part) = place;
      run.data = std::move(*message.mutable_data());
      foreign = visit(run);
      if (!foreign.ok()) break;
      last = place;
    }
    if (!foreign.ok()) context.TryCancel();
    return stream->Finish();
  };
  while (true) {
    bool heard = false;
    bool ended = false;
    const Status status = connection_->Call(
        patience_,
        [&](grpc::ClientContext& context) {
          const grpc::Status end = attempt(context, heard);
          ended = end.ok() || !foreign.ok();
          // What spoke and broke, or took longer than one call may, is opened again, with patience
          // anew. A server that shuts down cancels.
          const grpc::StatusCode code = end.error_code();
          const bool again = heard && (code == grpc::StatusCode::UNAVAILABLE ||
                                       code == grpc::StatusCode::DEADLINE_EXCEEDED ||
                                       code == grpc::StatusCode::CANCELLED);
          return ended || again ? grpc::Status::OK : end;
        },
        stop);
    RETURN_IF_ERROR(foreign);
    RETURN_IF_ERROR(status);
    if (ended) return OkStatus();
  }
}

Status StoreClient::PutArtifact(std::uint64_t table, const std::string& name,
                                std::string_view bytes, const std::string& sha256,
                                std::stop_token stop) const {
  Stub stub(connection_->channel());
  return connection_->Call(
      patience_,
      [&](grpc::ClientContext& context) {
        v1::PutArtifactResponse answer;
        const auto stream = stub.PutArtifact(&context, &answer);
        v1::PutArtifactRequest message;
        v1::ArtifactHeader& header = *message.mutable_header();
        header.set_table(table);
        header.set_name(name);
        header.set_size(bytes.size());
        header.set_sha256(sha256);
        bool open = stream->Write(message);
        for (std::size_t at = 0; open && at < bytes.size(); at += kChunkBytes) {
          const std::string_view part = bytes.substr(at, kChunkBytes);
          v1::Chunk& chunk = *message.mutable_chunk();
          chunk.set_offset(at);
          chunk.set_data(part.data(), part.size());
          chunk.set_crc32c(base::Crc32c(part));
          open = stream->Write(message);
        }
        stream->WritesDone();
        return stream->Finish();
      },
      stop);
}

StatusOr<std::string> StoreClient::GetArtifact(std::uint64_t table, const std::string& name,
                                               std::uint64_t limit_bytes,
                                               std::stop_token stop) const {
  Stub stub(connection_->channel());
  v1::GetArtifactRequest request;
  request.set_table(table);
  request.set_name(name);
  std::string out;
  Status foreign = OkStatus();
  const Status status = connection_->Call(
      patience_,
      [&](grpc::ClientContext& context) {
        // From the start: between attempts it may have been replaced.
        out.clear();
        const auto stream = stub.GetArtifact(&context, request);
        v1::Chunk chunk;
        while (foreign.ok() && stream->Read(&chunk)) {
          if (chunk.offset() != out.size() || base::Crc32c(chunk.data()) != chunk.crc32c()) {
            foreign = Damaged(*connection_, "artifact " + name);
          } else if (out.size() + chunk.data().size() > limit_bytes) {
            foreign =
                base::ResourceExhausted(fmt::format("{}: artifact {} is larger than {} bytes",
                                                    connection_->endpoint(), name, limit_bytes));
          } else {
            out += chunk.data();
          }
        }
        if (foreign.ok()) return stream->Finish();
        context.TryCancel();
        stream->Finish();
        return grpc::Status::OK;
      },
      stop);
  RETURN_IF_ERROR(foreign);
  RETURN_IF_ERROR(status);
  return out;
}

Status StoreClient::DropTable(std::uint64_t table) const {
  Stub stub(connection_->channel());
  v1::DropTableRequest request;
  request.set_table(table);
  v1::DropTableResponse answer;
  return connection_->Call(kSlowCall, [&](grpc::ClientContext& context) {
    return stub.DropTable(&context, request, &answer);
  });
}

StatusOr<StoreStats> StoreClient::Stats() const {
  Stub stub(connection_->channel());
  v1::StatsResponse answer;
  RETURN_IF_ERROR(connection_->Call(
      kQuickCall, [&](grpc::ClientContext& context) { return stub.Stats(&context, {}, &answer); }));
  StoreStats out{.disk_free_bytes = answer.disk_free_bytes(),
                 .accepts_writes = answer.accepts_writes()};
  for (const v1::FamilyStats& f : answer.families()) {
    out.families.push_back({f.name(), f.disk_bytes()});
  }
  return out;
}

StatusOr<std::uint64_t> StoreClient::Verify() const {
  Stub stub(connection_->channel());
  v1::VerifyResponse answer;
  RETURN_IF_ERROR(connection_->Call(
      kSlowCall, [&](grpc::ClientContext& context) { return stub.Verify(&context, {}, &answer); }));
  return answer.values();
}

Status StoreClient::Compact() const {
  Stub stub(connection_->channel());
  v1::CompactResponse answer;
  return connection_->Call(
      kSlowCall, [&](grpc::ClientContext& context) { return stub.Compact(&context, {}, &answer); });
}

StatusOr<std::string> StoreClient::Checkpoint(const std::string& name) const {
  Stub stub(connection_->channel());
  v1::CheckpointRequest request;
  request.set_name(name);
  v1::CheckpointResponse answer;
  RETURN_IF_ERROR(connection_->Call(kSlowCall, [&](grpc::ClientContext& context) {
    return stub.Checkpoint(&context, request, &answer);
  }));
  return answer.directory();
}

}  // namespace tenon::rpc
