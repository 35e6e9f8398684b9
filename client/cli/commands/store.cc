// tenon store stats | verify | compact | checkpoint
#include <fmt/format.h>

#include "client/cli/commands/services.h"
#include "client/cli/files.h"
#include "client/rpc/store_client.h"

namespace tenon::cli {
namespace {

StatusOr<Json> Stats(const rpc::StoreClient& client, Console& console) {
  ASSIGN_OR_RETURN(const rpc::StoreStats stats, client.Stats());
  Json families = Json::Object();
  for (const rpc::StoreStats::Family& family : stats.families) {
    console.Print(fmt::format("  {:<16}{:>12}", family.name, Bytes(family.disk_bytes)));
    families.Set(family.name, family.disk_bytes);
  }
  console.Print(fmt::format("  {:<16}{:>12}", "free on disk", Bytes(stats.disk_free_bytes)));
  if (!stats.accepts_writes) console.Print("  takes no writes until there is room again");
  return Json::Object({{"families", std::move(families)},
                       {"disk_free_bytes", stats.disk_free_bytes},
                       {"accepts_writes", stats.accepts_writes}});
}

StatusOr<Json> Act(const rpc::StoreClient& client, const StoreOptions& options, Console& console) {
  if (options.action == "stats") return Stats(client, console);
  if (options.action == "verify") {
    ASSIGN_OR_RETURN(const std::uint64_t values, client.Verify());
    console.Print(fmt::format("{} values, all intact", Grouped(values)));
    return Json::Object({{"values", values}});
  }
  if (options.action == "compact") {
    RETURN_IF_ERROR(client.Compact());
    return Stats(client, console);
  }
  ASSIGN_OR_RETURN(const std::string directory, client.Checkpoint(options.checkpoint));
  console.Print(directory);
  return Json::Object({{"directory", directory}});
}

}  // namespace

Outcome StoreCommand(Context& context, const StoreOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(auto connection, Connect(options.server));
  const rpc::StoreClient client(std::move(connection), rpc::kQuickCall);
  const StatusOr<Json> done = Act(client, options, context.console);
  if (!done.ok()) return Explained(done.status());
  RETURN_IF_ERROR(Deliver(*done, options.json, context.console));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
