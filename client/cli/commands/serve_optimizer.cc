#include "client/cli/commands/serve_optimizer.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "client/cli/commands/packs.h"
#include "client/registry/default_pack.h"
#include "client/rpc/connection.h"
#include "optimizer/service/child.h"
#include "optimizer/service/result.h"

namespace tenon::cli {
namespace {

// What this process may use: the machine's memory, or that of its control group.
std::uint64_t MemoryBytes() {
  std::uint64_t bytes =
      std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGE_SIZE));
  std::ifstream group("/sys/fs/cgroup/memory.max");
  std::uint64_t limit = 0;
  if (group >> limit) bytes = std::min(bytes, limit);  // Or the word "max".
  return bytes;
}

// Results of another program are others', whatever its version is called.
StatusOr<std::string> CodeVersion() {
  ASSIGN_OR_RETURN(const auto program, optimizer::OpenFile::Open("/proc/self/exe"));
  ASSIGN_OR_RETURN(const std::string hash, program->HashFrom(0));
  return TENON_VERSION " " + hash;
}

// Three quarters of it all for the models, in equal parts.
std::uint64_t MemoryOfOne(const ServeOptions& options, unsigned slots) {
  if (options.memory_limit_bytes != 0) return options.memory_limit_bytes;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;  // Their shadows are larger than any machine.
#else
  return MemoryBytes() / 4 * 3 / slots;
#endif
}

StatusOr<optimizer::PackSourceOptions> ReadPackSource(Context& context, const ServeOptions& options,
                                                      const std::string& coordinator,
                                                      const rpc::ConnectionOptions& connection) {
  optimizer::PackSourceOptions out;
  for (const std::string& reference : options.packs) {
    if (IsDefaultPack(reference)) {
      out.origins.push_back({.reference = reference, .bytes = registry::DefaultPackBytes()});
      continue;
    }
    out.origins.push_back({reference, !coordinator.empty() && !IsPackPath(reference)});
  }
  if (out.origins.empty()) {
    out.origins.push_back(
        {.reference = std::string(registry::kDefaultPack), .bytes = registry::DefaultPackBytes()});
  }
  out.find = FindPack;
  if (!coordinator.empty()) {
    ASSIGN_OR_RETURN(out.registry, rpc::Connection::Open(coordinator, connection));
  }
  if (!options.pack_key.empty()) {
    ASSIGN_OR_RETURN(out.signer, ReadPublicKey(options.pack_key));
  }
  out.log = [&context](std::string_view event, std::string_view reference,
                       std::string_view detail) {
    context.console.Log(
        event,
        {{"role", "optimizer"}, {"pack", std::string(reference)}, {"detail", std::string(detail)}});
  };
  return out;
}

}  // namespace

StatusOr<optimizer::ServeOptions> ReadOptimizer(Context& context, const ServeOptions& options,
                                                const std::string& data,
                                                const std::string& coordinator,
                                                const rpc::ConnectionOptions& connection,
                                                const Security& security, unsigned slots) {
  optimizer::ServeOptions out;
  ASSIGN_OR_RETURN(const std::string code, CodeVersion());
  out.node = {
      .directory = data + "/optimizer",
      .limits = {.running = slots, .waiting = options.queue, .per_caller = options.per_caller},
      .model_bytes_max = options.model_limit_bytes,
      .memory_limit_bytes = MemoryOfOne(options, slots),
      .time_limit_max = std::chrono::milliseconds(std::int64_t(options.time_limit_max_s * 1000)),
      .cache_bytes = options.cache_limit_bytes,
      .child_command = {"/proc/self/exe", "internal-optimizer"},
      .code_version = code};
  ASSIGN_OR_RETURN(out.packs, ReadPackSource(context, options, coordinator, connection));
  out.packs.folder = out.node.directory + "/packs";
  out.refresh = std::chrono::seconds(options.refresh_s);
  out.listen = options.role == "all" ? options.optimizer_listen : options.listen;
  if (out.listen.empty()) out.listen = kDefaultOptimizer;
  ASSIGN_OR_RETURN(out.credentials, security.Credentials());
  out.caller_of = security::CallerOf;
  out.transfer_limit = std::chrono::seconds(options.transfer_limit_s);
  out.drain_limit = std::chrono::seconds(options.drain_s);
  return out;
}

Outcome InternalOptimizerCommand(Context&) {
  return optimizer::RunOptimizerChild() == 0 ? ExitCode::kDone : ExitCode::kInternal;
}

}  // namespace tenon::cli
