// Rules as rewrites of the e-graph library egg (docs/formats/peers.md).
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/rules/rule.h"

namespace tenon::interop {

// `rewrite!("name"; "(MatMul_2 ?a ..)" => "..")`, from source to target. An operator's name carries
// the rank of its result, and its attributes are its first children, all of them, in the order of
// the operator's definition.
//
// A pattern knows nothing of extents, so Unimplemented where the rule needs some: conditions beyond
// what its operators require anyway, shapes that are not the most general ones, attributes that
// are computed or that are extents; several outputs; a side that is an input alone on the left.
StatusOr<std::string> ToEgg(const rules::Rule& rule);

}  // namespace tenon::interop
