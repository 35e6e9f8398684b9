// tenon: one program for every role. This file is the table of contents: it reads the command line
// into plain structs, calls one function of commands/ and turns what comes back into an exit code.
// The only file that includes CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"

namespace tenon::cli {
namespace {

using Run = std::function<Outcome(Context&)>;

// What the command line says, filled while it is parsed.
struct Parsed {
  ConsoleOptions console;
  std::string log_format = "text";
  std::string json;  // "-" or a file; of the one command that was named.
  Run run;
};

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 bad input; 4 the service is "
    "unreachable; 5 internal error.";

void AddJson(CLI::App& command, Parsed& parsed) {
  command.add_option("--json", parsed.json,
                     "Write the result as JSON to this file; with '-' to stdout, and nothing else "
                     "goes there");
}

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& what,
                     const std::string& examples) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->fallthrough();  // -v and --log-format may stand anywhere.
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  return command;
}

void AddUniverse(CLI::App& app, Parsed& parsed) {
  CLI::App* group = AddCommand(app, "universe", "What is enumerated: the universes there are",
                               "  tenon universe list\n"
                               "  tenon universe show matrix");
  group->require_subcommand(1);

  CLI::App* list = AddCommand(*group, "list", "List the universes that are found by name", "");
  AddJson(*list, parsed);
  list->callback([&parsed] {
    parsed.run = [&parsed](Context& c) { return ListUniversesCommand(c, parsed.json); };
  });

  CLI::App* show = AddCommand(*group, "show", "Print a universe", "");
  auto options = std::make_shared<UniverseShowOptions>();
  show->add_option("universe", options->universe, "Name or file")->required();
  show->callback([&parsed, options] {
    parsed.run = [options](Context& c) { return ShowUniverseCommand(c, *options); };
  });
}

void AddEnumeration(CLI::App& command, EnumerationOptions& o) {
  command.add_option("--universe", o.universe, "Its name, or the path of a .textproto file")
      ->required();
  command
      .add_option("--max-operators", o.max_operators,
                  "Operators of a graph at most (default: as the universe says)")
      ->check(CLI::Range(1, 8));
  command
      .add_option("--mode", o.mode,
                  "exhaustive: every graph; canonical: up to renaming of inputs of one type")
      ->check(CLI::IsMember({"exhaustive", "canonical"}))
      ->capture_default_str();
  command.add_option("--shards", o.shards, "Parts to cut the enumeration into; changes no result")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_option("--seed", o.seed, "Of the random inputs; changes no result")
      ->capture_default_str();
  command
      .add_option("--memory-limit", o.memory_limit_bytes,
                  "Bytes, or 512MiB, 4GiB (default: most of what is free)")
      ->transform(CLI::AsSizeValue(false));
  command.add_option("--time-limit", o.time_limit_s, "Seconds; what would take longer is refused")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void AddEnumerate(CLI::App& app, Parsed& parsed) {
  CLI::App* command = AddCommand(app, "enumerate", "Make and count every graph of a universe",
                                 "  tenon enumerate --universe matrix\n"
                                 "  tenon enumerate --universe matrix --max-operators 3 --json -");
  auto options = std::make_shared<EnumerateOptions>();
  AddEnumeration(*command, options->enumeration);
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return EnumerateCommand(c, *options);
    };
  });
}

void AddProve(CLI::App& app, Parsed& parsed) {
  CLI::App* command =
      AddCommand(app, "prove", "Judge rules: proved for all sizes, refuted, or why not",
                 "  tenon prove my.rules\n"
                 "  tenon prove tests/rules/*/*.rules --json -\n"
                 "Exit code 0 only if each rule meets its `expect` (none: proved).");
  auto options = std::make_shared<ProveOptions>();
  command->add_option("files", options->files, "Rule files")->required();
  command->add_option("--rule", options->only, "Only rules of this name");
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return ProveCommand(c, *options);
    };
  });
}

void AddEverything(CLI::App& app, Parsed& parsed) {
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_flag("-v,--verbose", parsed.console.verbose, "Say more on stderr while working");
  app.add_option("--log-format", parsed.log_format, "How stderr is written: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.require_subcommand(1);
  app.footer(kExitCodes);
  AddUniverse(app, parsed);
  AddEnumerate(app, parsed);
  AddProve(app, parsed);
}

// The error line of wrong usage: what CLI11 says, and which help to read.
void PrintUsageError(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = "tenon";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  const std::vector<std::string> rest = app.remaining(true);
  std::string what = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && what.starts_with("A subcomm")) {
    what = rest.empty() ? "name a command" : fmt::format("there is no command '{}'", rest.front());
  }
  PrintError(fmt::format("{}; see {} --help", what, command));
}

int Main(int argc, char** argv) {
  Parsed parsed;
  CLI::App app("Tenon finds, proves and uses rewrite rules of tensor programs.", "tenon");
  AddEverything(app, parsed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    PrintUsageError(app, error);
    return static_cast<int>(ExitCode::kUsage);
  }
  parsed.console.log_format = parsed.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  parsed.console.json_on_stdout = parsed.json == "-";

  const Interrupt interrupt;
  Console console(parsed.console);
  Context context{console, interrupt};
  Outcome outcome = parsed.run(context);
  console.EndProgress();
  if (outcome.ok()) {
    if (const Status status = console.OutputStatus(); !status.ok()) outcome = status;
  }
  if (outcome.ok()) return static_cast<int>(*outcome);
  if (interrupt.requested()) {
    PrintError("interrupted: nothing was written");
    interrupt.Reraise();
  }
  PrintError(base::Message(outcome.status()));
  return static_cast<int>(ExitCodeOf(outcome.status()));
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) { return tenon::cli::Main(argc, argv); }
