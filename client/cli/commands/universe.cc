// tenon universe list | show
#include <fmt/format.h>

#include <algorithm>

#include "client/cli/commands/commands.h"
#include "client/cli/files.h"

namespace tenon::cli {

Outcome ListUniversesCommand(Context& context, const std::string& json) {
  RETURN_IF_ERROR(CheckDeliverable(json));
  const std::vector<UniverseFile> files = ListUniverses();
  std::size_t width = 8;
  for (const UniverseFile& file : files) width = std::max(width, file.name.size());
  Json document = Json::Array();
  for (const UniverseFile& file : files) {
    context.console.Print(fmt::format("{:<{}}  {}", file.name, width, file.path));
    document.Append(Json::Object({{"name", file.name}, {"path", file.path}}));
  }
  if (files.empty()) {
    return base::NotFound(
        "no universe was found; set TENON_UNIVERSES to a folder of .textproto files");
  }
  RETURN_IF_ERROR(Deliver(document, json, context.console));
  return ExitCode::kDone;
}

Outcome ShowUniverseCommand(Context& context, const UniverseShowOptions& options) {
  ASSIGN_OR_RETURN(const std::string path, FindUniverse(options.universe));
  ASSIGN_OR_RETURN(std::string text, ReadText(path));
  while (text.ends_with('\n')) text.pop_back();
  context.console.Print(fmt::format("# {}", path));
  context.console.Print(text);
  return ExitCode::kDone;
}

}  // namespace tenon::cli
