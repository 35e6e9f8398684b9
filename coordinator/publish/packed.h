// Rules as a pack has them: with names, float classes and families, in its order.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/pack/pack.h"
#include "core/rules/rule.h"

namespace tenon::publish {

// The rules, which differ, in canonical form and in the order of a pack. Names say the operators of
// both sides; of several rules with the same ones, all but the first are numbered. Of
// the rules of a family (core/rules/forms.h) all but the first are forms of the first. Without
// certificates. A function of the set of rules. InvalidArgument when a rule has no canonical form.
StatusOr<std::vector<pack::PackedRule>> Packed(std::vector<rules::Rule> all);

}  // namespace tenon::publish
