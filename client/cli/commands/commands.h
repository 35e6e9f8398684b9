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

struct EnumerationOptions {
  std::string universe;              // A name or a file.
  std::optional<int> max_operators;  // Instead of the universe's own.
  std::string mode = "exhaustive";   // Or canonical.
  std::uint32_t shards = 1;
  std::uint64_t seed = 1;
  std::uint64_t memory_limit_bytes = 0;  // 0: three quarters of what the machine has free.
  double time_limit_s = 3600;            // What would take longer is refused.
};

struct EnumerateOptions {
  EnumerationOptions enumeration;
  std::string json;
};
Outcome EnumerateCommand(Context& context, const EnumerateOptions& options);

// ---- proofs

struct ProveOptions {
  std::vector<std::string> files;
  std::string only;  // Prove only rules of this name.
  std::string json;
};
Outcome ProveCommand(Context& context, const ProveOptions& options);

}  // namespace tenon::cli
