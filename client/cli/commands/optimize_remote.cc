#include "client/cli/commands/optimize_remote.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "client/cli/commands/packs.h"
#include "client/registry/sha256.h"
#include "client/rpc/optimize_client.h"
#include "optimizer/onnx/files.h"
#include "optimizer/onnx/one_file.h"

namespace tenon::cli {
namespace {

using std::chrono::milliseconds;

// A model is one file on the wire: the most that a protobuf can be.
constexpr std::uint64_t kOneFileMax = (std::uint64_t{1} << 31) - 1;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
// Besides the limits of time: the way there and back, and waiting for others.
constexpr double kOtherwiseSeconds = 900;

milliseconds Milliseconds(double seconds) {
  return milliseconds(std::max<std::int64_t>(1, std::int64_t(std::min(seconds, 1e8) * 1000)));
}

// The bytes of a model: those of its file, or, if it refers to other files, with their data in it.
class Upload {
 public:
  static StatusOr<std::unique_ptr<Upload>> Open(const std::string& path) {
    auto out = std::make_unique<Upload>();
    out->path_ = path;
    ASSIGN_OR_RETURN(out->text_, optimizer::AsOneFile(path, kOneFileMax));
    out->file_.open(path, std::ios::binary | std::ios::ate);
    out->size_ = out->text_ ? out->text_->size() : std::uint64_t(out->file_.tellg());
    return out;
  }
  std::uint64_t size() const { return size_; }
  StatusOr<std::string> Read(std::uint64_t at, std::size_t bytes) {
    if (text_) return text_->substr(at, bytes);
    std::string block(bytes, '\0');
    file_.seekg(std::streamoff(at));
    file_.read(block.data(), std::streamsize(bytes));
    if (!file_) return base::DataLoss(fmt::format("{}: it cannot be read to its end", path_));
    return block;
  }
  StatusOr<std::string> Hash() {
    registry::Sha256Stream hash;
    for (std::uint64_t at = 0; at < size_; at += kBlockBytes) {
      ASSIGN_OR_RETURN(const std::string block,
                       Read(at, std::min<std::uint64_t>(kBlockBytes, size_ - at)));
      hash.Add(block);
    }
    return registry::ToHex(hash.Finish());
  }

 private:
  std::string path_;
  std::ifstream file_;
  std::optional<std::string> text_;
  std::uint64_t size_ = 0;
};

// What arrives, beside the place where it is to be.
class Download {
 public:
  explicit Download(std::string path) : path_(std::move(path)) {}

  Status Write(std::uint64_t at, std::string_view bytes) {
    if (at == 0) {
      file_ = std::make_unique<optimizer::StagedFile>();
      hash_ = std::make_unique<registry::Sha256Stream>();
      RETURN_IF_ERROR(file_->Open(path_));
    }
    hash_->Add(bytes);
    return file_->Write(bytes);
  }
  Status Finish(const std::string& sha256) {
    if (registry::ToHex(hash_->Finish()) != sha256) {
      return base::DataLoss("the result was damaged on the way; nothing was written");
    }
    RETURN_IF_ERROR(file_->Sync());
    return file_->Commit();
  }

 private:
  const std::string path_;
  std::unique_ptr<optimizer::StagedFile> file_;
  std::unique_ptr<registry::Sha256Stream> hash_;
};

StatusOr<convert::OptimizeOptions> ToSend(const OptimizeOptions& options, Upload& model) {
  const optimizer::RunSettings& s = options.settings;
  convert::OptimizeOptions out{.request_id = rpc::NewRequestId(),
                               .model_bytes = model.size(),
                               .packs = options.packs,
                               .device = s.device,
                               .search = s.search,
                               .alpha = s.alpha,
                               .tolerance = s.tolerance,
                               .time_limit = Milliseconds(s.time_limit_s),
                               .check_time_limit = Milliseconds(s.check_time_limit_s),
                               .fast_math = s.fast_math,
                               .without = s.without,
                               .seed = s.seed};
  for (const std::string& pack : options.packs) {
    if (!IsPackPath(pack)) continue;
    return base::InvalidArgument(fmt::format(
        "--pack {}: a server uses packs of its own; name one of them, or none for all", pack));
  }
  if (!s.cost_cache.empty()) {
    return base::InvalidArgument("--cost-cache: a server has measured costs of its own");
  }
  ASSIGN_OR_RETURN(out.model_sha256, model.Hash());
  return out;
}

milliseconds LimitOf(const OptimizeOptions& options) {
  if (options.deadline_s > 0) return Milliseconds(options.deadline_s);
  return Milliseconds(options.settings.time_limit_s + options.settings.check_time_limit_s +
                      kOtherwiseSeconds);
}

StatusOr<std::shared_ptr<rpc::Connection>> Open(const OptimizeOptions& options) {
  ASSIGN_OR_RETURN(rpc::ConnectionOptions how, ReadConnection(options.server));
  how.attempt = LimitOf(options);  // A server that takes its time is not away.
  return rpc::Connection::Open(options.server.server, how);
}

// An error of a call, with what helps.
Status WithAdvice(const Status& status, double deadline_s) {
  if (absl::IsDeadlineExceeded(status) && deadline_s > 0) {
    return absl::DeadlineExceededError(base::Message(status) + "; give a longer --deadline");
  }
  return absl::IsDeadlineExceeded(status) ? status : Explained(status);
}

}  // namespace

StatusOr<optimizer::Report> OptimizeRemotely(Context& context, const OptimizeOptions& options) {
  Console& console = context.console;
  ASSIGN_OR_RETURN(const std::shared_ptr<rpc::Connection> connection, Open(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<Upload> model, Upload::Open(options.model));
  ASSIGN_OR_RETURN(const convert::OptimizeOptions request, ToSend(options, *model));
  Download result(options.out);
  const rpc::OptimizeHooks hooks{
      .read = [&](std::uint64_t at, std::size_t bytes) { return model->Read(at, bytes); },
      .write = [&](std::uint64_t at, std::string_view bytes) { return result.Write(at, bytes); },
      .progress =
          [&](const std::string& phase, std::uint64_t done) {
            console.Progress(phase, done, phase == "send" ? model->size() : 0);
          },
      .note =
          [&](const std::string& note) {
            console.EndProgress();
            console.Warn(note);
          }};
  const rpc::OptimizeClient client(connection);
  const auto answer = client.Optimize(request, LimitOf(options), hooks, context.interrupt.token());
  console.EndProgress();
  if (!answer.ok()) return WithAdvice(answer.status(), options.deadline_s);
  console.Log("result", {{"server", connection->endpoint()},
                         {"request", request.request_id},
                         {"cached", answer->cached ? "true" : "false"}});
  ASSIGN_OR_RETURN(optimizer::Report report,
                   optimizer::ParseReport(answer->report_json, "the server's report"));
  RETURN_IF_ERROR(result.Finish(answer->model_sha256));
  if (answer->cached) {  // What is found anew is told on the way.
    for (const std::string& note : report.notes) console.Warn(note);
  }
  report.model = options.model;
  report.result = options.out;
  return report;
}

}  // namespace tenon::cli
