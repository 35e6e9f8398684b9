// Counterexamples as people and programs read them.
#pragma once

#include "client/cli/console.h"
#include "client/cli/json.h"
#include "verifier/verdict.h"

namespace tenon::cli {

// Sizes, inputs and the output that differs, in a few indented lines. Long inputs are cut.
void PrintCounterexample(const verifier::Counterexample& example, Console& console);

// The whole of it; the fields are described in docs/formats/json.md.
Json CounterexampleJson(const verifier::Counterexample& example);

}  // namespace tenon::cli
