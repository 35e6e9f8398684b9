// Node: what an optimizer does for its calls, without the wire: takes models, keeps results, lets
// calls wait for their turn, and has children work on them.
//
//   DATA/lock       held while a node works here
//   DATA/work/ID    of one call: the model, and what its child writes; emptied at the start
//   DATA/results    optimizer/service/cache.h
//   DATA/costs      optimizer/device/cost_cache.h
//   DATA/packs      optimizer/service/packs.h
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/registry/sha256.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "optimizer/onnx/files.h"
#include "optimizer/service/admission.h"
#include "optimizer/service/cache.h"
#include "optimizer/service/child.h"
#include "optimizer/service/packs.h"
#include "optimizer/service/request.h"

namespace tenon::optimizer {

struct NodeOptions {
  std::string directory;
  AdmissionLimits limits;
  std::uint64_t model_bytes_max = std::uint64_t{512} << 20;
  std::uint64_t memory_limit_bytes = 0;               // Of a child's address space; 0: no limit.
  std::chrono::milliseconds time_limit_max{600'000};  // Of a search, and of a comparison.
  std::uint64_t cache_bytes = std::uint64_t{1} << 30;
  // What a child is: a program that calls RunOptimizerChild(); [0] is a path.
  std::vector<std::string> child_command;
  std::string code_version;  // Results of another one are not reused.
};

// How calls end; values of a label.
enum class CallOutcome : std::uint8_t {
  kDone,       // A result, computed for this call.
  kCached,     // A result of an earlier one.
  kRefused,    // Too much to do, or going down.
  kInvalid,    // What was asked for cannot be.
  kCancelled,  // By the caller, his deadline, or his death.
  kFailed,     // The node's fault.
};
CallOutcome OutcomeOf(const Status& status);

struct NodeFigures {
  std::size_t running = 0, waiting = 0;
  std::uint64_t slots = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;  // Of models.
  std::uint64_t children_died = 0;
  bool ready = false;  // All packs are there, and it takes calls.
  CacheFigures cache;
  PackFigures packs;
};

// A call of a caller that is being served. One thread has it; its destructor frees everything.
class Call;

// Thread-safe. Outlives its calls.
class Node {
 public:
  // FailedPrecondition: another node works in the directory. Errors of MakeDirectories.
  static StatusOr<std::unique_ptr<Node>> Open(const NodeOptions& options, PackSource& packs);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // ResourceExhausted: Admission::Enter. Unavailable: the node is draining.
  StatusOr<std::unique_ptr<Call>> Enter(const std::string& caller);

  // Takes no more calls, and ends those that wait: Unavailable, DRAINING. Those that run go on.
  void Drain();

  const NodeOptions& options() const { return options_; }
  NodeFigures figures() const;

 private:
  friend class Call;
  Node(NodeOptions options, PackSource& packs) : options_(std::move(options)), packs_(packs) {}

  const NodeOptions options_;
  PackSource& packs_;
  int lock_fd_ = -1;
  std::unique_ptr<ResultCache> cache_;
  std::atomic<std::uint64_t> next_folder_{1}, bytes_in_{0}, bytes_out_{0}, children_died_{0};

  mutable base::Mutex mutex_;
  std::unique_ptr<Admission> admission_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

struct CallHooks {
  std::function<bool()> gone;  // The caller does not want it any more; asked every 100 ms.
  std::function<void(const ChildProgress& progress)> progress;
  std::function<void(const std::string& note)> note;
};

// Enter, Begin, Add.., Finish, Optimize, in this order. Thread-compatible.
class Call {
 public:
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Before the model comes. ResourceExhausted, MODEL_TOO_LARGE; InvalidArgument: limits of time
  // above the node's; errors of PackSource::Select and of files.
  Status Begin(const convert::OptimizeOptions& options);
  // The next bytes of the model. InvalidArgument: more than announced. ResourceExhausted,
  // DISK_FULL: it may be tried again.
  Status Add(std::string_view bytes);
  // All of them have come. InvalidArgument: fewer than announced. DataLoss: others.
  Status Finish();

  // From the cache, or by a child when it is this call's turn. Errors as optimize.proto has them.
  // Once.
  StatusOr<Result> Optimize(const std::optional<SteadyTime>& deadline, const CallHooks& hooks);
  void Sent(std::size_t bytes) { node_.bytes_out_ += bytes; }

 private:
  friend class Node;
  Call(Node& node, Admission::Ticket ticket) : node_(node), ticket_(ticket) {}
  Status AwaitTurn(const CallHooks& hooks);
  StatusOr<Result> Work(const TimeShares& time, const CallHooks& hooks, bool& repeatable);

  Node& node_;
  const Admission::Ticket ticket_;
  convert::OptimizeOptions options_;
  RunSettings settings_;
  ServedPacks packs_;
  std::string folder_;  // Empty: there is none yet.
  std::unique_ptr<StagedFile> model_;
  registry::Sha256Stream hash_;
  std::uint64_t bytes_ = 0;
};

}  // namespace tenon::optimizer
