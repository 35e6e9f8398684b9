// tenon pack merge
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/packs.h"
#include "client/cli/files.h"
#include "coordinator/publish/merge.h"

namespace tenon::cli {

Outcome MergePacksCommand(Context& context, const PackMergeOptions& options) {
  RETURN_IF_ERROR(CheckWritable(options.out));
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  registry::PackFile merged;
  RETURN_IF_ERROR(ParsePackReference(options.name, merged));
  ASSIGN_OR_RETURN(const registry::SigningKey key, ReadSigningKey(options.key));

  std::vector<registry::PackFile> packs;
  for (const std::string& reference : options.packs) {
    ASSIGN_OR_RETURN(registry::PackFile pack, OpenPack(reference));
    packs.push_back(std::move(pack));
  }
  std::vector<publish::MergeInput> inputs;
  for (const registry::PackFile& pack : packs) {
    inputs.push_back({pack.reference(), pack.content});
    merged.provenance.time = std::max(merged.provenance.time, pack.provenance.time);
  }
  const auto progress = [&](std::size_t done, std::size_t total) {
    context.console.Progress("prune: rules that others derive", done, total);
    return !context.interrupt.requested();
  };
  ASSIGN_OR_RETURN(publish::Merged out, publish::Merge(inputs, progress));
  context.console.EndProgress();

  merged.content = std::move(out.content);
  merged.provenance.job = "tenon pack merge";
  merged.provenance.code_version = TENON_VERSION;
  ASSIGN_OR_RETURN(merged.address, registry::AddressOf(merged.content));
  RETURN_IF_ERROR(registry::WritePackFile(options.out, merged, &key));
  const std::size_t rules = pack::FamilyCount(merged.content);
  const std::size_t forms = merged.content.rules.size();
  context.console.Print(
      fmt::format("{}: {} rules in {} forms; {} were there already, {} are derived by others",
                  options.out, rules, forms, out.repeated, out.derived));
  RETURN_IF_ERROR(Deliver(Json::Object({{"pack", options.out},
                                        {"name", merged.name},
                                        {"version", pack::ToString(merged.version)},
                                        {"address", merged.address},
                                        {"rules", rules},
                                        {"forms", forms},
                                        {"repeated", out.repeated},
                                        {"derived", out.derived}}),
                          options.json, context.console));
  return ExitCode::kDone;
}

}  // namespace tenon::cli
