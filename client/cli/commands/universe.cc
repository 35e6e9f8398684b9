// tenon universe list | show
#include <fmt/format.h>

#include <algorithm>

#include "client/cli/commands/commands.h"
#include "client/cli/files.h"
#include "client/cli/universes.h"
#include "proto/convert/universe.h"

namespace tenon::cli {

Outcome ListUniversesCommand(Context& context, const std::string& json) {
  RETURN_IF_ERROR(CheckDeliverable(json));
  const std::vector<UniverseSource> sources = ListUniverses();
  std::size_t width = 8;
  for (const UniverseSource& source : sources) width = std::max(width, source.name.size());
  Json document = Json::Array();
  for (const UniverseSource& source : sources) {
    const std::string where = source.path.empty() ? "built in" : source.path;
    // A malformed file is listed, too: `show` and `enumerate` say what is wrong with it.
    const StatusOr<std::string> text = UniverseText(source);
    StatusOr<graph::Universe> universe =
        text.ok() ? convert::ParseUniverse(*text, where) : StatusOr<graph::Universe>(text.status());
    const std::string description = universe.ok() ? universe->description : "malformed";
    context.console.Print(fmt::format("{:<{}}  {}  {}", source.name, width, description,
                                      context.console.Paint(Color::kDim, "(" + where + ")")));
    document.Append(
        Json::Object({{"name", source.name}, {"path", source.path}, {"description", description}}));
  }
  RETURN_IF_ERROR(Deliver(document, json, context.console));
  return ExitCode::kDone;
}

Outcome ShowUniverseCommand(Context& context, const UniverseShowOptions& options) {
  ASSIGN_OR_RETURN(const UniverseSource source, FindUniverse(options.universe));
  ASSIGN_OR_RETURN(std::string text, UniverseText(source));
  RETURN_IF_ERROR(
      convert::ParseUniverse(text, source.path.empty() ? source.name : source.path).status());
  while (text.ends_with('\n')) text.pop_back();
  context.console.Print(text);
  return ExitCode::kDone;
}

}  // namespace tenon::cli
