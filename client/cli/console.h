// The terminal: what a command says, to whom, and how it is stopped.
//
// Results go to stdout, everything else (progress, log lines, errors) to stderr. With `--json -`
// stdout carries the JSON document and nothing else, so the readable results are left out. Colour
// and redrawn progress bars appear on a terminal only, and never with NO_COLOR or TERM=dumb.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon::cli {

// What scripts may rely on.
enum class ExitCode : int {
  kDone = 0,
  kNo = 1,           // The command worked and the answer is no.
  kUsage = 2,        // Unknown command, flag or value.
  kBadInput = 3,     // A file, its content or a limit.
  kUnreachable = 4,  // A service did not answer.
  kInternal = 5,     // A bug of Tenon.
};

// The mapping that core/base/status.h documents.
ExitCode ExitCodeOf(const Status& status);

// How a command ended, or the error that ended it.
using Outcome = StatusOr<ExitCode>;

enum class LogFormat : std::uint8_t { kText, kJson };

struct ConsoleOptions {
  bool verbose = false;
  LogFormat log_format = LogFormat::kText;
  bool json_on_stdout = false;
};

enum class Color : std::uint8_t { kPlain, kBold, kDim, kGreen, kRed, kYellow };

// Thread-safe.
class Console {
 public:
  explicit Console(const ConsoleOptions& options);

  // A line of the readable result.
  void Print(std::string_view line);
  // The JSON document of `--json -`.
  void PrintDocument(std::string_view text);
  // Whether all of stdout was written. A closed pipe counts as written: nobody wants the rest.
  Status OutputStatus();
  // `text` in `color` if stdout shows colours, else as it is.
  std::string Paint(Color color, std::string_view text) const;

  // One event for people who look over the shoulder, with -v only: its name and its fields.
  using Fields = std::vector<std::pair<std::string_view, std::string>>;
  void Log(std::string_view event, const Fields& fields);
  // A step that is shown where there is no bar: as a log line with --log-format json, else as
  // `line` on stderr. On a terminal the progress says it.
  void Tell(std::string_view event, const Fields& fields, std::string_view line);
  // Something the user should know although the command goes on: always shown, on stderr.
  void Warn(std::string_view message);

  // Progress of `stage`: `done` of `total` (0: not known). Cheap to call often. The stage that was
  // shown before ends when another one starts.
  void Progress(std::string_view stage, std::uint64_t done, std::uint64_t total);
  // Ends the stage that is shown. Commands call it before they print results.
  void EndProgress();

  bool json_on_stdout() const { return options_.json_on_stdout; }

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ClearBar() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConsoleOptions options_;
  const bool bars_;    // stderr redraws.
  const bool colors_;  // stdout shows colours.

  base::Mutex mutex_;
  std::string stage_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_first_ ABSL_GUARDED_BY(mutex_) = 0;  // When the stage was first shown.
  bool bar_shown_ ABSL_GUARDED_BY(mutex_) = false;
  int output_error_ ABSL_GUARDED_BY(mutex_) = 0;  // The first errno of stdout.
  Clock::time_point started_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point drawn_ ABSL_GUARDED_BY(mutex_);  // When something was drawn last.
  bool announced_ ABSL_GUARDED_BY(mutex_) = false;   // The stage has been drawn.
};

// "tenon: " and the message in one line on stderr: line breaks in it become "; ".
void PrintError(std::string_view message);

// Turns SIGINT and SIGTERM into a request to stop that commands look at where they can end cleanly;
// the second signal ends the process at once. One per process, in main. SIGPIPE is ignored and
// SIGABRT (a failed CHECK) ends the process with ExitCode::kInternal.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const;
  bool requested() const { return token().stop_requested(); }
  // Ends the process by the signal that was caught, as shells expect of a program that was
  // interrupted. Returns if there was none.
  void Reraise() const;

 private:
  struct Watcher;
  std::unique_ptr<Watcher> watcher_;
};

// 1234567 -> "1,234,567".
std::string Grouped(std::uint64_t n);
// "0.82 s", "12.3 s", "3 min 05 s".
std::string Duration(double seconds);
// "812 MB".
std::string Bytes(std::uint64_t bytes);

}  // namespace tenon::cli
