// Which universe a name means.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/universe.h"

namespace tenon::cli {

struct UniverseSource {
  std::string name;
  std::string path;  // Of its file; empty for one that is part of the program.
};

// The universes that have a name: those in the folders of $TENON_UNIVERSES (with colons between
// them) and of ../share/tenon/universes beside the program, then those that are part of the
// program. By name within a folder; the first of a name hides the others.
std::vector<UniverseSource> ListUniverses();

// The universe that `--universe` means: a path (with a slash, or of a file that exists) or a name
// of the list. NotFound lists the names there are; InvalidArgument.
StatusOr<UniverseSource> FindUniverse(const std::string& name_or_path);
// Its text, comments included.
StatusOr<std::string> UniverseText(const UniverseSource& source);
// What a pack of it is called by default: a universe's name may hold what a pack's may not.
std::string DefaultPackName(const graph::Universe& universe);
// Found, read and checked.
StatusOr<graph::Universe> OpenUniverse(const std::string& name_or_path);

}  // namespace tenon::cli
