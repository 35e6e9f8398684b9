#include "optimizer/service/child.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <vector>

#include "client/registry/file.h"
#include "client/registry/pack_file.h"
#include "client/rpc/child_process.h"
#include "optimizer/run/run.h"
#include "optimizer/service/request.h"

namespace tenon::optimizer {
namespace {

// The other side, and what is said to it when there is no memory to say anything with.
int channel = -1;
std::string* last_words = nullptr;
std::atomic_flag speaking = ATOMIC_FLAG_INIT;

std::string Framed(const FromChild& message) {
  const std::string payload = Encode(message);
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) {
    frame += static_cast<char>(payload.size() >> shift & 0xff);
  }
  return frame + payload;
}

// Allocates nothing, so that whoever waits for his turn gets it.
bool Send(std::string_view frame) {
  while (speaking.test_and_set()) {
  }
  while (!frame.empty()) {
    const ssize_t n = write(channel, frame.data(), frame.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    frame.remove_prefix(std::size_t(n));
  }
  speaking.clear();
  return frame.empty();
}

void Say(const FromChild& message) {
  // Nobody listens any more: there is nothing to work for.
  if (!Send(Framed(message))) _exit(1);
}

[[noreturn]] void OutOfMemory() {
  Send(*last_words);
  _exit(1);
}

void PrepareLastWords() {
  last_words = new std::string(Framed(
      ChildEnd{base::ResourceExhausted("the model needs more memory than this server gives to one"),
               "OUT_OF_MEMORY", false}));
  std::set_new_handler(OutOfMemory);
}

// The channel is stdin and stdout; libraries that print must not reach it.
bool TakeChannel() {
  channel = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return channel >= 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
         dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

// If the machine runs out of memory, the kernel is to end this and not the node.
void OfferToDie() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, "500", 3);
  close(fd);
}

StatusOr<ToChild> Read() {
  std::string payload;
  if (!rpc::ReadFrame(channel, payload)) return absl::CancelledError("the node is gone");
  return DecodeToChild(payload);
}

StatusOr<std::vector<registry::PackFile>> ReadPacks(std::uint32_t count) {
  std::vector<registry::PackFile> packs;
  std::string bytes;
  while (packs.size() < count) {
    ASSIGN_OR_RETURN(const ToChild message, Read());
    const auto* part = std::get_if<ChildPackPart>(&message);
    if (part == nullptr) return base::Internal("a frame that is no part of a pack");
    bytes += part->bytes;
    if (!part->last) continue;
    ASSIGN_OR_RETURN(registry::PackFile pack, registry::DecodePackFile(bytes));
    packs.push_back(std::move(pack));
    bytes.clear();
  }
  return packs;
}

bool IsRepeatable(const Report& report) {
  return report.end != NameOf(SearchEnd::kTimeLimit) &&
         report.end != NameOf(SearchEnd::kInterrupted) && report.check &&
         report.check->skipped.empty();
}

StatusOr<bool> Work() {
  ASSIGN_OR_RETURN(const ToChild message, Read());
  const auto* task = std::get_if<ChildTask>(&message);
  if (task == nullptr) return base::Internal("a frame that is no task");
  ASSIGN_OR_RETURN(const std::vector<registry::PackFile> packs, ReadPacks(task->packs));
  RunHooks hooks;
  hooks.search_end = task->search_end;
  hooks.check_end = task->check_end;
  hooks.progress = [](const RunProgress& p) {
    Say(ChildProgress{std::string(p.phase), p.done, p.cost_us});
  };
  hooks.note = [](const std::string& note) { Say(ChildNote{note}); };
  RunSettings settings = SettingsOf(task->options);
  settings.cost_cache = kChildCosts;
  ASSIGN_OR_RETURN(const RunResult result,
                   OptimizeFile(kChildModel, kChildResult, packs, settings, hooks));
  for (const std::string& note : result.notes) Say(ChildNote{note});
  if (result.files.size() != 1) {
    return base::ResourceExhausted(
        "the result is larger than one file of ONNX may be; optimize this model without a server");
  }
  RETURN_IF_ERROR(registry::WriteFile(kChildReport, ToJson(result.report)));
  return IsRepeatable(result.report);
}

}  // namespace

int RunOptimizerChild() {
  rpc::DieWithParent();
  OfferToDie();
  if (!TakeChannel()) return 1;
  PrepareLastWords();
  const StatusOr<bool> done = Work();
  Say(ChildEnd{done.status(), "", done.ok() && *done});
  return 0;
}

}  // namespace tenon::optimizer
