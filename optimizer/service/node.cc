// The shell around Admission, the cache and the packs. A call runs in the thread that brought it,
// which is also the one that its child dies with.
#include "optimizer/service/node.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "client/registry/file.h"
#include "client/rpc/child_process.h"
#include "proto/convert/status.h"

namespace tenon::optimizer {
namespace {

using std::chrono::milliseconds;
using End = rpc::ChildProcess::End;

constexpr milliseconds kTurnPoll{100}, kTurnTold{1000};
constexpr milliseconds kDiskRetry{5000};

Status Gone() { return absl::CancelledError("the caller does not want it any more"); }

Status Draining() {
  return convert::WithDetails(base::Unavailable("the server is going down; ask another one"),
                              {.reason = "DRAINING"});
}

Status WithReason(const Status& status, const std::string& reason) {
  return convert::WithDetails(status, {.reason = reason});
}

// Files of the node are not what the caller got wrong.
Status OfTheDisk(const Status& status) {
  if (status.ok()) return status;
  if (!absl::IsResourceExhausted(status)) return base::Internal(base::Message(status));
  return convert::WithDetails(status, {.reason = "DISK_FULL", .retry_after = kDiskRetry});
}

void SendTask(rpc::ChildProcess& child, const ChildTask& task, const ServedPacks& packs) {
  child.Send(Encode(ToChild(task)));
  for (const auto& pack : packs) {
    for (std::size_t at = 0; at < pack->file.size(); at += kPackPartBytes) {
      child.Send(Encode(ToChild(ChildPackPart{.last = at + kPackPartBytes >= pack->file.size(),
                                              .bytes = pack->file.substr(at, kPackPartBytes)})));
    }
  }
}

}  // namespace

CallOutcome OutcomeOf(const Status& status) {
  const std::string reason = convert::DetailsOf(status).reason;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CallOutcome::kDone;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return CallOutcome::kCancelled;
    case absl::StatusCode::kResourceExhausted:
      return convert::IsRetriable(status) ? CallOutcome::kRefused : CallOutcome::kInvalid;
    case absl::StatusCode::kUnavailable:
      return CallOutcome::kRefused;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kFailedPrecondition:
      return CallOutcome::kInvalid;
    default:
      return CallOutcome::kFailed;
  }
}

StatusOr<std::unique_ptr<Node>> Node::Open(const NodeOptions& options, PackSource& packs) {
  std::unique_ptr<Node> node(new Node(options, packs));
  RETURN_IF_ERROR(registry::MakeDirectories(options.directory, 0700));
  const std::string lock = options.directory + "/lock";
  node->lock_fd_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (node->lock_fd_ < 0 || flock(node->lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return base::FailedPrecondition(fmt::format(
        "{}: another process works there; give each one its own --data", options.directory));
  }
  std::error_code ignored;
  std::filesystem::remove_all(options.directory + "/work", ignored);
  RETURN_IF_ERROR(registry::MakeDirectories(options.directory + "/work", 0700));
  ASSIGN_OR_RETURN(node->cache_,
                   ResultCache::Open(options.directory + "/results", options.cache_bytes));
  const base::MutexLock hold(node->mutex_);
  node->admission_ = std::make_unique<Admission>(options.limits);
  return node;
}

Node::~Node() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

StatusOr<std::unique_ptr<Call>> Node::Enter(const std::string& caller) {
  const base::MutexLock lock(mutex_);
  if (draining_) return Draining();
  ASSIGN_OR_RETURN(const Admission::Ticket ticket, admission_->Enter(caller));
  return std::unique_ptr<Call>(new Call(*this, ticket));
}

void Node::Drain() {
  const base::MutexLock lock(mutex_);
  draining_ = true;
}

NodeFigures Node::figures() const {
  NodeFigures out;
  out.slots = options_.limits.running;
  out.bytes_in = bytes_in_;
  out.bytes_out = bytes_out_;
  out.children_died = children_died_;
  out.cache = cache_->figures();
  out.packs = packs_.figures();
  const base::MutexLock lock(mutex_);
  out.running = admission_->running();
  out.waiting = admission_->waiting();
  out.ready = !draining_ && out.packs.missing == 0;
  return out;
}

Call::~Call() {
  model_.reset();
  if (!folder_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  const base::MutexLock lock(node_.mutex_);
  node_.admission_->Leave(ticket_);
}

Status Call::Begin(const convert::OptimizeOptions& options) {
  const NodeOptions& node = node_.options_;
  if (options.model_bytes > node.model_bytes_max) {
    return WithReason(base::ResourceExhausted(fmt::format(
                          "the model has {} bytes, and {} is the limit here; "
                          "optimize it without a server, or ask for a larger --model-limit",
                          options.model_bytes, node.model_bytes_max)),
                      "MODEL_TOO_LARGE");
  }
  options_ = options;
  settings_ = SettingsOf(options);
  const double most = std::chrono::duration<double>(node.time_limit_max).count();
  if (settings_.time_limit_s > most || settings_.check_time_limit_s > most) {
    const std::string what = fmt::format("more than the {} s of this server", most);
    return convert::Violations({{"options.time_limit_ms", what}});
  }
  ASSIGN_OR_RETURN(packs_, node_.packs_.Select(options.packs));
  folder_ = fmt::format("{}/work/{}", node.directory, node_.next_folder_++);
  RETURN_IF_ERROR(OfTheDisk(registry::MakeDirectories(folder_, 0700)));
  model_ = std::make_unique<StagedFile>();
  return OfTheDisk(model_->Open(folder_ + "/" + kChildModel));
}

Status Call::Add(std::string_view bytes) {
  if (bytes.size() > options_.model_bytes - bytes_) {
    return convert::Violations({{"chunk.data", "more than options.model_bytes"}});
  }
  bytes_ += bytes.size();
  node_.bytes_in_ += bytes.size();
  hash_.Add(bytes);
  return OfTheDisk(model_->Write(bytes));
}

Status Call::Finish() {
  if (bytes_ != options_.model_bytes) {
    return convert::Violations({{"chunk", "the stream ended before options.model_bytes"}});
  }
  if (registry::ToHex(hash_.Finish()) != options_.model_sha256) {
    return base::DataLoss("the bytes that came are not those of options.model_sha256");
  }
  return OfTheDisk(model_->Commit());
}

StatusOr<Result> Call::Optimize(const std::optional<SteadyTime>& deadline, const CallHooks& hooks) {
  std::vector<std::string> packs;
  for (const auto& pack : packs_) packs.push_back(ReferenceOf(*pack) + " " + pack->address);
  const std::string key =
      ResultKey(options_.model_sha256, packs, settings_, node_.options_.code_version);
  if (std::optional<Result> known = node_.cache_->Get(key)) return *std::move(known);
  RETURN_IF_ERROR(AwaitTurn(hooks));
  // Somebody may have asked for the same meanwhile.
  if (std::optional<Result> known = node_.cache_->Get(key)) return *std::move(known);
  bool repeatable = false;
  const auto now = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(Result result, Work(ShareTime(now, deadline, settings_), hooks, repeatable));
  // The caller has his result, whether it can be kept or not.
  if (repeatable) node_.cache_->Put(key, result).IgnoreError();
  return result;
}

Status Call::AwaitTurn(const CallHooks& hooks) {
  {
    const base::MutexLock lock(node_.mutex_);
    node_.admission_->Ready(ticket_);
  }
  const auto runs = [this] {
    node_.mutex_.AssertHeld();
    return node_.admission_->Runs(ticket_);
  };
  for (auto told = std::chrono::steady_clock::now();;) {
    ChildProgress waits{.phase = "wait"};
    {
      const base::MutexLock lock(node_.mutex_);
      if (node_.mutex_.AwaitFor(runs, kTurnPoll)) return OkStatus();
      if (node_.draining_) return Draining();
      waits.done = node_.admission_->Ahead(ticket_);
    }
    if (hooks.gone()) return Gone();
    if (std::chrono::steady_clock::now() - told < kTurnTold) continue;
    told = std::chrono::steady_clock::now();
    hooks.progress(waits);
  }
}

StatusOr<Result> Call::Work(const TimeShares& time, const CallHooks& hooks, bool& repeatable) {
  rpc::ChildProcess child({.command = node_.options_.child_command,
                           .directory = folder_,
                           .memory_limit_bytes = node_.options_.memory_limit_bytes});
  RETURN_IF_ERROR(child.Start());
  SendTask(child,
           {.options = options_,
            .search_end = time.search_end,
            .check_end = time.check_end,
            .packs = std::uint32_t(packs_.size())},
           packs_);
  const auto died = [&](const std::string& how) {
    ++node_.children_died_;
    return WithReason(
        base::Internal(fmt::format("the process that worked on the model died ({}); perhaps the "
                                   "machine is short of memory. Other models are not affected",
                                   how)),
        "OPTIMIZER_DIED");
  };
  while (true) {
    std::string payload;
    const auto left =
        std::chrono::ceil<milliseconds>(time.kill_at - std::chrono::steady_clock::now());
    switch (child.Await(std::max(left, milliseconds(0)), hooks.gone, payload)) {
      case End::kStopped:
        return Gone();
      case End::kLate:
        return absl::DeadlineExceededError("the time was over before there was a result");
      case End::kDied:
        return died(child.Kill());
      case End::kFrame:
        break;
    }
    ASSIGN_OR_RETURN(const FromChild message, DecodeFromChild(payload));
    if (const auto* progress = std::get_if<ChildProgress>(&message)) {
      hooks.progress(*progress);
    } else if (const auto* note = std::get_if<ChildNote>(&message)) {
      hooks.note(note->text);
    } else {
      const ChildEnd& end = std::get<ChildEnd>(message);
      if (!end.reason.empty()) return WithReason(end.status, end.reason);
      RETURN_IF_ERROR(end.status);
      repeatable = end.repeatable;
      return OpenResult(folder_ + "/" + kChildResult, folder_ + "/" + kChildReport);
    }
  }
}

}  // namespace tenon::optimizer
