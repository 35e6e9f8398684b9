#include "client/rpc/optimize_client.h"

#include <algorithm>

#include <fmt/core.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "core/base/crc32c.h"
#include "tenon/v1/optimize.grpc.pb.h"

namespace tenon::rpc {
namespace {

using Stream = grpc::ClientReaderWriter<v1::OptimizeRequest, v1::OptimizeResponse>;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// One attempt. A stream that the server has ended says why at its end, and nothing here does.
class Exchange {
 public:
  Exchange(const convert::OptimizeOptions& options, const OptimizeHooks& hooks,
           OptimizeAnswer& answer)
      : options_(options), hooks_(hooks), answer_(answer) {}

  // Errors of our own side.
  Status Send(Stream& stream) {
    v1::OptimizeRequest message;
    ToMessage(options_, *message.mutable_options());
    bool open = stream.Write(message);
    for (std::uint64_t at = 0; open && at < options_.model_bytes;) {
      hooks_.progress("send", at);
      const auto size = std::min<std::uint64_t>(kChunkBytes, options_.model_bytes - at);
      ASSIGN_OR_RETURN(std::string bytes, hooks_.read(at, size));
      v1::Chunk& chunk = *message.mutable_chunk();
      chunk.set_offset(at);
      chunk.set_crc32c(base::Crc32c(bytes));
      chunk.set_data(std::move(bytes));
      open = stream.Write(message);
      at += size;
    }
    stream.WritesDone();
    return OkStatus();
  }

  Status Receive(Stream& stream) {
    v1::OptimizeResponse message;
    while (stream.Read(&message)) {
      if (message.has_progress()) {
        hooks_.progress(message.progress().phase(), message.progress().done());
      } else if (message.has_note()) {
        hooks_.note(message.note());
      } else if (message.has_result()) {
        answer_ = {.model_bytes = message.result().model_bytes(),
                   .model_sha256 = message.result().model_sha256(),
                   .cached = message.result().cached()};
        report_bytes_ = message.result().report_bytes();
      } else if (message.has_chunk()) {
        RETURN_IF_ERROR(Take(message.chunk()));
      } else if (message.has_report_json()) {
        answer_.report_json += message.report_json();
        if (answer_.report_json.size() > report_bytes_) {
          return base::DataLoss("the report is longer than was said");
        }
      }
    }
    return OkStatus();
  }
  bool complete() const {
    return at_ > 0 && at_ == answer_.model_bytes && report_bytes_ > 0 &&
           answer_.report_json.size() == report_bytes_;
  }

 private:
  Status Take(const v1::Chunk& chunk) {
    if (chunk.offset() != at_ || base::Crc32c(chunk.data()) != chunk.crc32c() ||
        chunk.data().size() > answer_.model_bytes - at_) {
      return base::DataLoss("the result was damaged on the way");
    }
    RETURN_IF_ERROR(hooks_.write(at_, chunk.data()));
    at_ += chunk.data().size();
    return OkStatus();
  }

  const convert::OptimizeOptions& options_;
  const OptimizeHooks& hooks_;
  OptimizeAnswer& answer_;
  std::uint64_t at_ = 0;            // Bytes of the model that have come.
  std::uint64_t report_bytes_ = 0;  // As announced.
};

}  // namespace

OptimizeClient::OptimizeClient(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

StatusOr<OptimizeAnswer> OptimizeClient::Optimize(const convert::OptimizeOptions& options,
                                                  Milliseconds limit, const OptimizeHooks& hooks,
                                                  std::stop_token stop) const {
  OptimizeAnswer answer;
  Status ours;
  bool complete = false;
  RETURN_IF_ERROR(connection_->Call(
      limit,
      [&](grpc::ClientContext& context) {
        answer = {};
        Exchange exchange(options, hooks, answer);
        const auto stream = v1::OptimizeService::Stub(connection_->channel()).Optimize(&context);
        ours = exchange.Send(*stream);
        if (ours.ok()) ours = exchange.Receive(*stream);
        if (!ours.ok()) context.TryCancel();
        const grpc::Status end = stream->Finish();
        complete = exchange.complete();
        return ours.ok() ? end : grpc::Status::OK;
      },
      stop));
  RETURN_IF_ERROR(ours);
  if (!complete) return base::DataLoss(connection_->endpoint() + ": the answer ended early");
  return answer;
}

}  // namespace tenon::rpc
