#include "client/cli/console.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "client/cli/files.h"
#include "client/cli/json.h"
#include "core/base/check.h"

namespace tenon::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A bar is redrawn this often.
constexpr milliseconds kRedraw{100};
// Without a terminal, a line is written for a new stage and this often within one, but never two
// within a second: what is over at once needs no lines.
constexpr seconds kLineEvery{10};
constexpr seconds kLineGap{1};

bool IsTerminal(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

bool NoColor() {
  const char* value = std::getenv("NO_COLOR");
  return value != nullptr && *value != '\0';
}

int Columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}

std::string OneLine(std::string_view message) {
  std::string line;
  for (const char c : message) {
    if (c == '\n') {
      line += "; ";
    } else {
      line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  while (line.ends_with("; ")) line.resize(line.size() - 2);
  return line;
}

std::string JsonFields(std::string_view event, const Console::Fields& fields) {
  std::string line = fmt::format("\"event\":{}", Quoted(event));
  for (const auto& [name, value] : fields) {
    line += fmt::format(",{}:{}", Quoted(name), Quoted(value));
  }
  return line;
}

}  // namespace

ExitCode ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kNo;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kBadInput;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kUnreachable;
    default:  // absl's list is open.
      return ExitCode::kInternal;
  }
}

void PrintError(std::string_view message) {
  WriteAll(STDERR_FILENO, "tenon: " + OneLine(message) + "\n");
}

Console::Console(const ConsoleOptions& options)
    : options_(options),
      bars_(IsTerminal(STDERR_FILENO) && options.log_format == LogFormat::kText),
      colors_(IsTerminal(STDOUT_FILENO) && !NoColor()),
      drawn_(Clock::now()) {
  auto logger =
      std::make_shared<spdlog::logger>("tenon", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(options.verbose ? spdlog::level::info : spdlog::level::warn);
  logger->set_pattern(options.log_format == LogFormat::kJson
                          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                          : "%v");
  spdlog::set_default_logger(std::move(logger));
}

void Console::Print(std::string_view line) {
  if (options_.json_on_stdout) return;
  base::MutexLock lock(mutex_);
  ClearBar();
  const int error = WriteAll(STDOUT_FILENO, std::string(line) + "\n");
  if (output_error_ == 0) output_error_ = error;
}

void Console::PrintDocument(std::string_view text) {
  base::MutexLock lock(mutex_);
  ClearBar();
  const int error = WriteAll(STDOUT_FILENO, text);
  if (output_error_ == 0) output_error_ = error;
}

Status Console::OutputStatus() {
  base::MutexLock lock(mutex_);
  if (output_error_ == 0 || output_error_ == EPIPE) return OkStatus();
  return base::ResourceExhausted(fmt::format(
      "cannot write the result to stdout: {}; send it elsewhere", std::strerror(output_error_)));
}

std::string Console::Paint(Color color, std::string_view text) const {
  if (!colors_ || color == Color::kPlain) return std::string(text);
  const char* code = "0";
  switch (color) {
    case Color::kPlain:
      break;
    case Color::kBold:
      code = "1";
      break;
    case Color::kDim:
      code = "2";
      break;
    case Color::kGreen:
      code = "32";
      break;
    case Color::kRed:
      code = "31";
      break;
    case Color::kYellow:
      code = "33";
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

void Console::Log(std::string_view event, const Fields& fields) {
  std::string line;
  if (options_.log_format == LogFormat::kJson) {
    line = JsonFields(event, fields);
  } else {
    line = std::string(event);
    for (const auto& [name, value] : fields) line += fmt::format(" {}={}", name, OneLine(value));
  }
  base::MutexLock lock(mutex_);
  ClearBar();
  spdlog::info(line);
}

void Console::Tell(std::string_view event, const Fields& fields, std::string_view line) {
  const base::MutexLock lock(mutex_);
  if (options_.log_format == LogFormat::kJson) {
    spdlog::warn(JsonFields(event, fields));
  } else if (!bars_) {
    WriteAll(STDERR_FILENO, OneLine(line) + "\n");
  }
}

void Console::Warn(std::string_view message) {
  base::MutexLock lock(mutex_);
  ClearBar();
  if (options_.log_format == LogFormat::kJson) {
    spdlog::warn(fmt::format("\"event\":\"warning\",\"message\":{}", Quoted(message)));
  } else {
    spdlog::warn(fmt::format("tenon: note: {}", OneLine(message)));
  }
}

void Console::Progress(std::string_view stage, std::uint64_t done, std::uint64_t total) {
  const auto now = Clock::now();
  base::MutexLock lock(mutex_);
  const bool other = stage != stage_;
  if (other) {
    Finish(now);
    stage_ = stage;
    started_ = now;
    done_first_ = done;
    announced_ = false;
  }
  done_ = done;
  total_ = total;
  const Clock::duration since = now - drawn_;
  const bool due = bars_ ? since >= kRedraw : since >= (announced_ ? kLineEvery : kLineGap);
  if (due) Draw(now);
}

void Console::EndProgress() {
  base::MutexLock lock(mutex_);
  Finish(Clock::now());
}

// A bar on a terminal, `stage: 12,000 of 40,278 (29 %)` elsewhere.
void Console::Draw(Clock::time_point now) {
  drawn_ = now;
  announced_ = true;
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  std::string amount;
  if (total_ > 0) {
    amount = fmt::format("{} of {} ({} %)", Grouped(done_), Grouped(total_),
                         std::min<std::uint64_t>(100, done_ * 100 / total_));
  } else if (done_ > 0) {
    amount = Grouped(done_);
  }
  if (options_.log_format == LogFormat::kJson) {
    spdlog::warn(fmt::format(
        "\"event\":\"progress\",\"stage\":{},\"done\":{},\"total\":{},\"seconds\":{:.1f}",
        Quoted(stage_), done_, total_, elapsed));
    return;
  }
  if (!bars_) {
    WriteAll(STDERR_FILENO, fmt::format("{}{}{}\n", stage_, amount.empty() ? "" : ": ", amount));
    return;
  }
  constexpr int kCells = 24;
  std::string bar;
  if (total_ > 0) {
    const auto full = static_cast<int>(std::min(done_, total_) * kCells / total_);
    bar = fmt::format(" [{}{}]", std::string(static_cast<std::size_t>(full), '#'),
                      std::string(static_cast<std::size_t>(kCells - full), '.'));
  }
  std::string left;
  if (total_ > done_ && done_ > done_first_ && elapsed >= 3) {
    const double rate = double(done_ - done_first_) / elapsed;
    left = fmt::format(", {} left", Duration(double(total_ - done_) / rate));
  }
  std::string line = fmt::format("{}{} {} {}{}", stage_, bar, amount, Duration(elapsed), left);
  line.resize(std::min(line.size(), static_cast<std::size_t>(Columns() - 1)));
  WriteAll(STDERR_FILENO, "\r\x1b[K" + line);
  bar_shown_ = true;
}

void Console::Finish(Clock::time_point now) {
  if (stage_.empty()) return;
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  ClearBar();
  // What took a while leaves a line where its bar was.
  if (bars_ && elapsed >= 1) {
    WriteAll(STDERR_FILENO, fmt::format("{}: {}\n", stage_, Duration(elapsed)));
  }
  stage_.clear();
}

void Console::ClearBar() {
  if (!bar_shown_) return;
  WriteAll(STDERR_FILENO, "\r\x1b[K");
  bar_shown_ = false;
}

// ---- signals

namespace {

// What a handler may touch.
std::atomic<int> g_signal{0};
std::atomic<int> g_wake{-1};

extern "C" void OnStop(int number) {
  if (g_signal.exchange(number) != 0) {
    ::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(g_wake.load(), &one, sizeof one);
}

extern "C" void OnAbort(int) {
  constexpr char kText[] =
      "tenon: internal error: a bug of Tenon, see the line above; please report it with the "
      "command "
      "line and the input\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(static_cast<int>(ExitCode::kInternal));
}

void Handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  // A second signal inside the handler of the first one must get through.
  action.sa_flags = SA_RESTART | SA_NODEFER;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

struct Interrupt::Watcher {
  int fd = -1;
  std::stop_source source;
  std::thread thread;  // Waits for the first signal, or for the end.
};

Interrupt::Interrupt() : watcher_(std::make_unique<Watcher>()) {
  watcher_->fd = ::eventfd(0, EFD_CLOEXEC);
  CHECK(watcher_->fd >= 0);
  g_wake = watcher_->fd;
  watcher_->thread = std::thread([w = watcher_.get()] {
    std::uint64_t count = 0;
    while (::read(w->fd, &count, sizeof count) < 0 && errno == EINTR) {
    }
    if (g_signal != 0) w->source.request_stop();
  });
  Handle(SIGINT, OnStop);
  Handle(SIGTERM, OnStop);
  Handle(SIGABRT, OnAbort);
  ::signal(SIGPIPE, SIG_IGN);
}

Interrupt::~Interrupt() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(watcher_->fd, &one, sizeof one);
  watcher_->thread.join();
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::close(watcher_->fd);
}

std::stop_token Interrupt::token() const { return watcher_->source.get_token(); }

void Interrupt::Reraise() const {
  const int number = g_signal;
  if (number == 0) return;
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// ---- numbers for people

std::string Grouped(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string Duration(double seconds) {
  if (seconds < 0.0995) return fmt::format("{:.1f} ms", seconds * 1000);
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

std::string Bytes(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{} kB", bytes / 1000);
  if (bytes < 10'000'000'000) return fmt::format("{} MB", bytes / 1'000'000);
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace tenon::cli
