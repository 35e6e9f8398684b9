#include "client/cli/universes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "client/cli/files.h"
#include "proto/convert/universe.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  if (const char* variable = std::getenv("TENON_UNIVERSES")) {
    std::string_view rest = variable;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    folders.push_back((program.parent_path().parent_path() / "share/tenon/universes").string());
  }
  return folders;
}

}  // namespace

std::vector<UniverseSource> ListUniverses() {
  std::vector<UniverseSource> found;
  const auto add = [&](UniverseSource source) {
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const auto& f) { return f.name == source.name; });
    if (!known) found.push_back(std::move(source));
  };
  for (const std::string& folder : Folders()) {
    std::vector<UniverseSource> here;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() != ".textproto") continue;
      here.push_back({at->path().stem().string(), at->path().string()});
    }
    std::sort(here.begin(), here.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    for (UniverseSource& source : here) add(std::move(source));
  }
  for (std::string& name : convert::BuiltinUniverseNames()) add({std::move(name), ""});
  return found;
}

StatusOr<UniverseSource> FindUniverse(const std::string& name_or_path) {
  std::error_code error;
  if (name_or_path.find('/') != std::string::npos || fs::is_regular_file(name_or_path, error)) {
    return UniverseSource{fs::path(name_or_path).stem().string(), name_or_path};
  }
  std::string names;
  for (const UniverseSource& source : ListUniverses()) {
    if (source.name == name_or_path) return source;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", source.name);
  }
  return base::NotFound(
      fmt::format("there is no universe '{}'; there are: {}; or give the path of a .textproto file",
                  name_or_path, names));
}

StatusOr<std::string> UniverseText(const UniverseSource& source) {
  return source.path.empty() ? convert::BuiltinUniverseText(source.name) : ReadText(source.path);
}

std::string DefaultPackName(const graph::Universe& universe) {
  std::string name;
  for (const char c : universe.name) {
    name += static_cast<char>(c == '.' ? '-' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return name;
}

StatusOr<graph::Universe> OpenUniverse(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const UniverseSource source, FindUniverse(name_or_path));
  ASSIGN_OR_RETURN(const std::string text, UniverseText(source));
  return convert::ParseUniverse(text, source.path.empty() ? source.name : source.path);
}

}  // namespace tenon::cli
