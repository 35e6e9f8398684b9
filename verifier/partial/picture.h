// Regions as a picture: SVG 1.1, without scripts or fonts of its own.
#pragma once

#include <string>

#include "core/rules/rule.h"
#include "verifier/partial/regions.h"

namespace tenon::partial {

// The output of `pair` over its last two axes, one panel for each choice of pieces of the others;
// equal regions green, unequal ones red, unknown ones grey, each axis with its cuts. Constant
// sizes are drawn to scale; symbolic regions get room for their names. The same bytes for the same
// regions.
std::string Picture(const rules::Rule& pair, const Regions& regions);

}  // namespace tenon::partial
