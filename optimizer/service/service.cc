// A call has a thread of gRPC's while it lasts. There are never more of them than the node admits:
// whoever is turned away is so before his first message is read, and who sends nothing, or sends or
// reads too slowly, is cut off.
#include "optimizer/service/service.h"

#include <algorithm>

#include <fmt/format.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include "client/rpc/server_limits.h"
#include "core/base/crc32c.h"
#include "proto/convert/status.h"
#include "tenon/v1/optimize.grpc.pb.h"

namespace tenon::optimizer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Stream = grpc::ServerReaderWriter<v1::OptimizeResponse, v1::OptimizeRequest>;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr int kThreadsMax = 256;
// Until the options have come.
constexpr milliseconds kFirstMessageMax{10'000};
// Progress and notes: who does not read them for so long is gone, or means ill.
constexpr milliseconds kSmallWriteMax{60'000};
// Progress is told when the phase changes, and else so often.
constexpr milliseconds kProgressPause{250};

// "ipv4:10.0.0.1:4711" without the port, which says nothing of the caller.
std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

std::optional<SteadyTime> DeadlineOf(const grpc::ServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  return Clock::now() + (deadline - std::chrono::system_clock::now());
}

// Where a part of UTF-8 text that begins at `at` ends: kChunkBytes later, or a bit before, so that
// no character is cut.
std::size_t PartEnd(const std::string& text, std::size_t at) {
  std::size_t end = std::min(at + kChunkBytes, text.size());
  while (end > at && end < text.size() && (text[end] & 0xc0) == 0x80) --end;
  return end > at ? end : std::min(at + kChunkBytes, text.size());
}

// What a caller is told. One thread.
class Teller {
 public:
  Teller(grpc::ServerContext& context, Stream& stream) : context_(context), stream_(stream) {}

  bool broken() const { return broken_; }
  void Tell(const ChildProgress& progress) {
    const auto now = Clock::now();
    if (progress.phase == phase_ && now - told_ < kProgressPause) return;
    phase_ = progress.phase;
    told_ = now;
    v1::OptimizeResponse message;
    message.mutable_progress()->set_phase(progress.phase);
    message.mutable_progress()->set_done(progress.done);
    message.mutable_progress()->set_best_cost_us(progress.cost_us);
    WriteSmall(message);
  }
  void Tell(const std::string& note) {
    v1::OptimizeResponse message;
    message.set_note(note);
    WriteSmall(message);
  }
  Status Send(const Result& result, Call& call, milliseconds transfer_limit) {
    rpc::TransferLimit limit(&context_, transfer_limit);
    v1::OptimizeResponse message;
    message.mutable_result()->set_model_bytes(result.model_bytes());
    message.mutable_result()->set_model_sha256(result.sha256);
    message.mutable_result()->set_cached(result.cached);
    message.mutable_result()->set_report_bytes(result.report_json.size());
    Write(message);
    for (std::uint64_t at = 0; at < result.model_bytes() && !broken_;) {
      const std::uint64_t size = std::min<std::uint64_t>(kChunkBytes, result.model_bytes() - at);
      ASSIGN_OR_RETURN(std::string bytes, result.file->Read(result.offset + at, size));
      v1::Chunk& chunk = *message.mutable_chunk();
      chunk.set_offset(at);
      chunk.set_crc32c(base::Crc32c(bytes));
      chunk.set_data(std::move(bytes));
      at += size;
      Write(message);
      limit.Moved(size);
      call.Sent(size);
    }
    const std::string& report = result.report_json;
    for (std::size_t at = 0; at < report.size() && !broken_;) {
      const std::size_t end = PartEnd(report, at);
      message.set_report_json(report.substr(at, end - at));
      at = end;
      Write(message);
    }
    return broken_ ? absl::CancelledError("the caller has gone") : OkStatus();
  }

 private:
  void Write(const v1::OptimizeResponse& message) { broken_ = broken_ || !stream_.Write(message); }
  void WriteSmall(const v1::OptimizeResponse& message) {
    const rpc::TransferLimit limit(&context_, kSmallWriteMax);
    Write(message);
  }

  grpc::ServerContext& context_;
  Stream& stream_;
  bool broken_ = false;
  std::string phase_;
  Clock::time_point told_;
};

class Service final : public v1::OptimizeService::Service {
 public:
  Service(const ServeOptions& options, Node& node) : options_(options), node_(node) {}

  grpc::Status Optimize(grpc::ServerContext* context, Stream* stream) override {
    const auto began = Clock::now();
    EndedCall ended;
    ended.caller = options_.caller_of ? options_.caller_of(*context) : "";
    if (ended.caller.empty()) ended.caller = HostOf(context->peer());
    ended.status = Run(*context, *stream, ended);
    if (!ended.status.ok()) ended.outcome = OutcomeOf(ended.status);
    if (context->IsCancelled()) ended.outcome = CallOutcome::kCancelled;
    ended.took = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    if (options_.on_call) options_.on_call(ended);
    return convert::ToGrpc(ended.status);
  }

 private:
  Status Run(grpc::ServerContext& context, Stream& stream, EndedCall& ended) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Call> call, node_.Enter(ended.caller));
    RETURN_IF_ERROR(Receive(context, stream, *call, ended));
    Teller teller(context, stream);
    const CallHooks hooks{.gone = [&] { return context.IsCancelled() || teller.broken(); },
                          .progress = [&](const ChildProgress& progress) { teller.Tell(progress); },
                          .note = [&](const std::string& note) { teller.Tell(note); }};
    ASSIGN_OR_RETURN(const Result result, call->Optimize(DeadlineOf(context), hooks));
    ended.outcome = result.cached ? CallOutcome::kCached : CallOutcome::kDone;
    return teller.Send(result, *call, options_.transfer_limit);
  }

  Status Receive(grpc::ServerContext& context, Stream& stream, Call& call, EndedCall& ended) {
    v1::OptimizeRequest message;
    {
      const rpc::TransferLimit limit(&context, kFirstMessageMax);
      if (!stream.Read(&message) || !message.has_options()) {
        return convert::Violations({{"options", "they must come first"}});
      }
    }
    ASSIGN_OR_RETURN(const convert::OptimizeOptions options,
                     convert::FromMessage(message.options()));
    ended.request_id = options.request_id;
    ended.model_bytes = options.model_bytes;
    RETURN_IF_ERROR(call.Begin(options));
    rpc::TransferLimit limit(&context, options_.transfer_limit);
    std::uint64_t at = 0;
    while (stream.Read(&message)) {
      const v1::Chunk& chunk = message.chunk();
      if (!message.has_chunk()) return convert::Violations({{"chunk", "nothing else may come"}});
      if (chunk.offset() != at) {
        return convert::Violations({{"chunk.offset", "not where the last one ended"}});
      }
      if (chunk.data().empty() || chunk.data().size() > kChunkBytes) {
        return convert::Violations({{"chunk.data", "1 byte to 1 MiB"}});
      }
      if (base::Crc32c(chunk.data()) != chunk.crc32c()) {
        return convert::Violations({{"chunk.crc32c", "it is not that of the data; send it again"}});
      }
      RETURN_IF_ERROR(call.Add(chunk.data()));
      at += chunk.data().size();
      limit.Moved(chunk.data().size());
    }
    if (context.IsCancelled()) return absl::CancelledError("the caller has gone");
    return call.Finish();
  }

  const ServeOptions& options_;
  Node& node_;
};

}  // namespace

struct Server::Impl {
  Impl(const ServeOptions& o, Node& node) : options(o), service(options, node) {}
  const ServeOptions options;
  Service service;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

StatusOr<std::unique_ptr<Server>> Server::Start(const ServeOptions& options, Node& node) {
  auto impl = std::make_unique<Impl>(options, node);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      options.listen, options.credentials ? options.credentials : grpc::InsecureServerCredentials(),
      &impl->port);
  builder.RegisterService(&impl->service);
  rpc::SetServerLimits(builder, kThreadsMax);
  if (options.customize) options.customize(builder);
  impl->server = builder.BuildAndStart();
  if (!impl->server || impl->port == 0) {
    return base::Unavailable(
        fmt::format("{}: cannot listen there; is the port taken?", options.listen));
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { Drain(milliseconds(0)); }

int Server::port() const { return impl_->port; }

void Server::SetServing(bool serving) {
  if (auto* health = impl_->server->GetHealthCheckService()) health->SetServingStatus(serving);
}

void Server::Drain(milliseconds limit) {
  SetServing(false);
  impl_->server->Shutdown(std::chrono::system_clock::now() + limit);
  impl_->server->Wait();
}

}  // namespace tenon::optimizer
