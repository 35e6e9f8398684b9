// The commands: what main.cc parsed, as plain structs, and the functions that do the work. Each .cc
// includes only the rooms that its command needs.
//
// Every function returns how the command ended or the error that ended it; main prints the error
// and turns it into the exit code. A stop that is requested while a function works leads to an
// early end without output files, except where a comment says otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/console.h"

namespace tenon::cli {

// What every command is given. References to what main owns.
struct Context {
  Console& console;
  const Interrupt& interrupt;
};

// ---- universes and enumeration

Outcome ListUniversesCommand(Context& context, const std::string& json);

struct UniverseShowOptions {
  std::string universe;
};
Outcome ShowUniverseCommand(Context& context, const UniverseShowOptions& options);

}  // namespace tenon::cli
