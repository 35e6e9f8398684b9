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

struct GenerateCommandOptions {
  EnumerationOptions enumeration;
  std::string out;
  std::string name;       // NAME@VERSION of the pack; empty: the universe's name and 0.1.0.
  std::string key;        // The file of the secret key to sign with; empty: the user's own.
  bool rejected = false;  // Print what was not proved, and why.
  std::string json;
};
Outcome GenerateCommand(Context& context, const GenerateCommandOptions& options);

// ---- proofs

struct ProveOptions {
  std::vector<std::string> files;
  std::string only;     // Prove only rules of this name.
  std::string smt_lib;  // The folder for the solver's questions; empty: they are not written.
  std::string json;
};
Outcome ProveCommand(Context& context, const ProveOptions& options);

// ---- rules of other systems

struct RulesImportOptions {
  std::string file;
  std::string format;    // taso or flexflow.
  std::string out;       // Rule text.
  std::string markdown;  // A page with a table.
  std::string json;
};
// Judges the rules of a file; the answer is no if one of them is refuted or unknown.
Outcome ImportRulesCommand(Context& context, const RulesImportOptions& options);

struct DeriveOptions {
  std::vector<std::string> files;
  std::string only;                 // Only rules of this name.
  std::vector<std::string> axioms;  // Rule files; empty: those that are built in.
  bool steps = false;               // Print each step.
  std::string json;
};
Outcome DeriveCommand(Context& context, const DeriveOptions& options);

struct PartialOptions {
  std::vector<std::string> files;
  std::string only;  // Only rules of this name.
  std::string svg;   // The regions as a picture; of one pair.
  std::string out;   // Rule text: the corrected rules that are proved.
  std::string json;
};
// Where the sides of rules that need not hold agree, and rules that are corrected; the answer is no
// if one is neither equal everywhere nor corrected by a proved rule.
Outcome PartialCommand(Context& context, const PartialOptions& options);

// ---- packs

// Puts packs into the cache, where they are found by name@version.
Outcome AddPackCommand(Context& context, const std::vector<std::string>& paths);

Outcome ListPacksCommand(Context& context, const std::string& json);

struct PackShowOptions {
  std::string pack;
  std::string rule;  // Only this one.
  std::string svg, dot;
  std::string json;
};
Outcome ShowPackCommand(Context& context, const PackShowOptions& options);

struct PackVerifyOptions {
  std::vector<std::string> packs;
  std::string key;  // A public key that must have signed them.
  std::string json;
};
Outcome VerifyPackCommand(Context& context, const PackVerifyOptions& options);

// Every rule is proved by its certificate, or the answer is no.
struct CheckCertificatesOptions {
  std::vector<std::string> packs;
  std::string json;
};
Outcome CheckCertificatesCommand(Context& context, const CheckCertificatesOptions& options);

// Gives every rule of a pack its certificate, and signs the result.
struct PackCertifyOptions {
  std::string pack;
  std::string key;
  std::string out;
};
Outcome CertifyPackCommand(Context& context, const PackCertifyOptions& options);

struct PackExportOptions {
  std::string pack;
  std::string format;  // taso, flexflow, egg or dot.
  std::string out;
  std::string json;
};
// Rules that the format cannot carry are left out, named and counted.
Outcome ExportPackCommand(Context& context, const PackExportOptions& options);

struct PackMergeOptions {
  std::vector<std::string> packs;
  std::string out;
  std::string name;
  std::string key;
  std::string json;
};
// One pack with the rules of all, without those that others derive (coordinator/publish/merge.h).
Outcome MergePacksCommand(Context& context, const PackMergeOptions& options);

struct PackDiffOptions {
  std::string a, b;
  bool content = false;
  std::string json;
};
Outcome DiffPacksCommand(Context& context, const PackDiffOptions& options);

struct PackKeygenOptions {
  std::string out;
};
Outcome GenerateKeyCommand(Context& context, const PackKeygenOptions& options);

struct PackSignOptions {
  std::string pack;
  std::string key;
  std::string out;
};
Outcome SignPackCommand(Context& context, const PackSignOptions& options);

// ---- models

struct ExplainOptions {
  std::string report;
  std::string dot, svg;
};
Outcome ExplainCommand(Context& context, const ExplainOptions& options);

struct ProfileOptions {
  std::vector<std::string> models;  // May be empty: only import and export.
  std::string device = "cpu";
  std::string cost_cache;  // Empty: the user's.
  std::string import_from, export_to;
  std::string json;
};
// A stop ends it with kNo after the batch that is being measured; what was measured is kept.
Outcome ProfileCommand(Context& context, const ProfileOptions& options);

}  // namespace tenon::cli
