// Universes as text: protobuf text format in, canonical text out, and the ones that come with
// Tenon.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/universe.h"

namespace tenon::v1 {
class Universe;
}  // namespace tenon::v1

namespace tenon::convert {

// The message's universe, fully checked; attribute values are expanded to operators.
// InvalidArgument: "field: what is wrong; what to do".
StatusOr<graph::Universe> FromMessage(const v1::Universe& message);
// The other way; FromMessage of it is the same universe.
v1::Universe ToMessage(const graph::Universe& universe);

// Reads text format. InvalidArgument: "FILE:LINE:COLUMN: .." for grammar, "FILE: field: .." beyond;
// `file` is only a name.
StatusOr<graph::Universe> ParseUniverse(std::string_view text, std::string_view file);

// The canonical text (docs/formats/universe.md): equal universes have equal texts, byte for byte,
// so it serves as their identity. ParseUniverse reads it back to the same universe.
std::string CanonicalText(const graph::Universe& universe);

// The universes of universes/*.textproto, which are part of the library; sorted.
std::vector<std::string> BuiltinUniverseNames();
// The text of one of them, comments included; NotFound names those there are.
StatusOr<std::string> BuiltinUniverseText(std::string_view name);

// The universe in the file `name_or_path`, or the one of that name that comes with Tenon. A word
// without '/' and '.' is a name. NotFound, InvalidArgument as above.
StatusOr<graph::Universe> LoadUniverse(const std::string& name_or_path);

}  // namespace tenon::convert
