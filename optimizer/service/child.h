// The inside of an optimizer child: a process that optimizes one model for a node, in a folder of
// its own, so that a crash or a hunger for memory ends one call and not the node, and cancelling
// is killing.
//
// Frames of client/rpc/child_process.h. To the child: the task, the packs, the start. From it:
// progress and notes, then the end. Models go by files of the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/status.h"
#include "optimizer/search/optimize.h"
#include "proto/convert/optimize.h"

namespace tenon::optimizer {

// Files of the folder that a child works in. The model is named so in messages, too.
inline constexpr const char* kChildModel = "model";
inline constexpr const char* kChildResult = "result.onnx";
inline constexpr const char* kChildReport = "report.json";
// What measured devices cost, for all children of a node.
inline constexpr const char* kChildCosts = "../../costs";

struct ChildTask {
  convert::OptimizeOptions options;
  std::optional<SteadyTime> search_end, check_end;
  std::uint32_t packs = 0;  // So many follow.
};
// A part of the bytes of a pack file, at most kPackPartBytes; the last one of a pack says so.
struct ChildPackPart {
  bool last = false;
  std::string bytes;
};
inline constexpr std::size_t kPackPartBytes = std::size_t{1} << 19;

struct ChildProgress {
  std::string phase;
  std::uint64_t done = 0;
  double cost_us = 0;
};
struct ChildNote {
  std::string text;
};
struct ChildEnd {
  Status status;
  std::string reason;  // Of the error, for programs; empty: none.
  // The same call again would give the same result: no limit of time has cut anything.
  bool repeatable = false;
};

// Payloads. InvalidArgument: they are no such thing.
using ToChild = std::variant<ChildTask, ChildPackPart>;
using FromChild = std::variant<ChildProgress, ChildNote, ChildEnd>;
std::string Encode(const ToChild& message);
std::string Encode(const FromChild& message);
StatusOr<ToChild> DecodeToChild(std::string_view payload);
StatusOr<FromChild> DecodeFromChild(std::string_view payload);

// Optimizes the model of the working folder for the other side of stdin; the exit code of the
// process. The process dies with the thread that started it. When memory runs out, its last words
// are RESOURCE_EXHAUSTED.
int RunOptimizerChild();

}  // namespace tenon::optimizer
