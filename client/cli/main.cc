// tenon: one program for every role. This file is the table of contents: it reads the command line
// into plain structs, calls one function of commands/ and turns what comes back into an exit code.
// Only this file, finite.h and the parse_*.cc include CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/optimize.h"
#include "client/cli/finite.h"
#include "client/cli/parse_gate.h"
#include "client/cli/parse_services.h"

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

// Two things that are to be written must not be one file; "-" is stdout.
void RequireDistinct(const std::vector<std::pair<std::string, std::string>>& flags_and_paths) {
  const auto place = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
  };
  for (auto a = flags_and_paths.begin(); a != flags_and_paths.end(); ++a) {
    for (auto b = std::next(a); b != flags_and_paths.end(); ++b) {
      if (a->second.empty() || b->second.empty() || a->second == "-") continue;
      if (place(a->second) == place(b->second)) {
        throw CLI::ValidationError(a->first + " and " + b->first, "name one file, " + a->second);
      }
    }
  }
}

void AddJson(CLI::App& command, Parsed& parsed) {
  command.add_option("--json", parsed.json,
                     "Write the result as JSON to this file; with '-' to stdout, and nothing else "
                     "goes there");
}

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& what,
                     const std::string& examples) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->fallthrough();  // -v and --log-format may stand anywhere.
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
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
      ->check(CLI::PositiveNumber & FiniteNumber())
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

void AddGenerate(CLI::App& app, Parsed& parsed) {
  CLI::App* command = AddCommand(app, "generate", "Find, prove and publish the rules of a universe",
                                 "  tenon generate --universe matrix --out matrix.pack\n"
                                 "  tenon generate --universe ./mine.textproto --out mine.pack "
                                 "--name mine@1.2.0 --json r.json");
  auto options = std::make_shared<GenerateCommandOptions>();
  AddEnumeration(*command, options->enumeration);
  command->add_option("-o,--out", options->out, "Where the pack goes")->required();
  command->add_option("--name", options->name,
                      "NAME@VERSION of the pack (default: UNIVERSE@0.1.0)");
  command->add_option("--key", options->key,
                      "Secret key to sign with (default: your own, made on first use)");
  command->add_flag("--rejected", options->rejected,
                    "Also print the candidates that were not proved, and why");
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return GenerateCommand(c, *options);
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
  command->add_option("--smt-lib", options->smt_lib,
                      "Write what the solver is asked to this folder, as SMT-LIB 2 scripts");
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return ProveCommand(c, *options);
    };
  });
}

void AddRules(CLI::App& app, Parsed& parsed) {
  CLI::App* group =
      AddCommand(app, "rules", "Rules of other systems: judge them and take them over",
                 "  tenon rules import --format taso graph_subst.pb -o taso.rules");
  group->require_subcommand(1);

  CLI::App* import = AddCommand(
      *group, "import", "Prove the rules of a file, or find the conditions under which they hold",
      "  tenon rules import --format taso graph_subst.pb -o taso.rules\n"
      "  tenon rules import --format flexflow graph_subst.json --markdown table.md --json -\n"
      "Exit code 0 if every rule is proved, with conditions or without; 1 if not.");
  auto options = std::make_shared<RulesImportOptions>();
  import->add_option("file", options->file, "The rule file")->required();
  import->add_option("--format", options->format, "What wrote it")
      ->required()
      ->check(CLI::IsMember({"taso", "flexflow"}));
  import->add_option("-o,--out", options->out, "Write the rules, with their conditions, as text");
  import->add_option("--markdown", options->markdown, "Write a page with a table of the verdicts");
  AddJson(*import, parsed);
  import->callback([&parsed, options] {
    RequireDistinct({{"--out", options->out}, {"--markdown", options->markdown},
                     {"--json", parsed.json}});
  parsed.run = [&parsed, options](Context& c) {
    options->json = parsed.json;
    return ImportRulesCommand(c, *options);
  };
});
}  // namespace

void AddDerive(CLI::App& app, Parsed& parsed) {
  CLI::App* command = AddCommand(
      app, "derive", "Explain rules: the steps that lead from one side to the other",
      "  tenon derive my.rules --steps\n"
      "  tenon derive my.rules --axioms other.rules --json -\n"
      "From small axioms, at one choice of sizes: a second opinion, no proof. Exit code 0 if each "
      "rule\nis derived, 1 if not.");
  auto options = std::make_shared<DeriveOptions>();
  command->add_option("files", options->files, "Rule files")->required();
  command->add_option("--rule", options->only, "Only rules of this name");
  command->add_option("--axioms", options->axioms, "Rule files to derive from (default: built in)");
  command->add_flag("--steps", options->steps, "Print each step with the term that it makes");
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return DeriveCommand(c, *options);
    };
  });
}

void AddPartial(CLI::App& app, Parsed& parsed) {
  CLI::App* command =
      AddCommand(app, "partial", "Find where two programs agree, and correct the rest",
                 "  tenon partial pairs.rules\n"
                 "  tenon partial pairs.rules --rule NAME --svg regions.svg -o corrected.rules\n"
                 "A pair is a rule that need not hold: the source is right, the target is cheaper "
                 "and wrong in "
                 "part.\nExit code 0 if each pair is equal everywhere or corrected by a proved "
                 "rule, 1 if not.");
  auto options = std::make_shared<PartialOptions>();
  command->add_option("files", options->files, "Rule files")->required();
  command->add_option("--rule", options->only, "Only rules of this name");
  command->add_option("--svg", options->svg, "Draw the regions of the pair");
  command->add_option("-o,--out", options->out,
                      "Write the corrected rules that are proved, as text");
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    RequireDistinct({{"--svg", options->svg}, {"--out", options->out}, {"--json", parsed.json}});
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return PartialCommand(c, *options);
    };
  });
}

void AddPack(CLI::App& app, Parsed& parsed) {
  CLI::App* group = AddCommand(app, "pack", "Rule packs: look into them, check them, sign them",
                               "  tenon pack show matrix.pack\n"
                               "  tenon pack verify *.pack");
  group->require_subcommand(1);

  CLI::App* add = AddCommand(*group, "add", "Put packs into the cache, to be found by name", "");
  auto added = std::make_shared<std::vector<std::string>>();
  add->add_option("packs", *added, "Paths")->required();
  add->callback(
      [&parsed, added] { parsed.run = [added](Context& c) { return AddPackCommand(c, *added); }; });

  AddRemotePacks(*group, {parsed.json, parsed.console.verbose, parsed.run});

  CLI::App* list = AddCommand(*group, "list", "The packs in the cache, or in a registry",
                              "  tenon pack list\n"
                              "  tenon pack list --server tenon.example:7400");
  auto listed = std::make_shared<PackRemoteOptions>();
  AddConnect(*list, listed->server);
  AddJson(*list, parsed);
  list->callback([&parsed, listed] {
    parsed.run = [&parsed, listed](Context& c) {
      listed->json = parsed.json;
      return listed->server.server.empty() ? ListPacksCommand(c, parsed.json)
                                           : ListRemotePacksCommand(c, *listed);
    };
  });

  CLI::App* show = AddCommand(*group, "show", "Print a pack as text, or draw a rule",
                              "  tenon pack show matrix.pack > matrix.rules\n"
                              "  tenon pack show matrix.pack --rule matrix.7 --svg rule.svg");
  auto shown = std::make_shared<PackShowOptions>();
  show->add_option("pack", shown->pack, "A path, or NAME@VERSION in the cache")->required();
  show->add_option("--rule", shown->rule, "Only the rule of this name");
  show->add_option("--svg", shown->svg, "Draw the rule into this file");
  show->add_option("--dot", shown->dot, "Write the rule as a Graphviz graph to this file");
  AddJson(*show, parsed);
  show->callback([&parsed, shown] {
    parsed.run = [&parsed, shown](Context& c) {
      shown->json = parsed.json;
      return ShowPackCommand(c, *shown);
    };
  });

  CLI::App* verify =
      AddCommand(*group, "verify", "Check content, address, signature and certificates",
                 "  tenon pack verify matrix.pack\n"
                 "  tenon pack verify matrix.pack --key team.pub");
  auto verified = std::make_shared<PackVerifyOptions>();
  verify->add_option("packs", verified->packs, "Paths, or NAME@VERSION in the cache")->required();
  verify->add_option("--key", verified->key, "Public key that must have signed them");
  AddJson(*verify, parsed);
  verify->callback([&parsed, verified] {
    parsed.run = [&parsed, verified](Context& c) {
      verified->json = parsed.json;
      return VerifyPackCommand(c, *verified);
    };
  });

  CLI::App* certify = AddCommand(*group, "certify", "Give every rule of a pack its certificate",
                                 "  tenon pack certify matrix.pack\n"
                                 "The content changes, so the pack gets a new address.");
  auto certified = std::make_shared<PackCertifyOptions>();
  certify->add_option("pack", certified->pack, "A path")->required();
  certify->add_option("--key", certified->key, "Secret key to sign with (default: your own)");
  certify->add_option("-o,--out", certified->out, "Where it goes (default: in place)");
  certify->callback([&parsed, certified] {
    parsed.run = [certified](Context& c) { return CertifyPackCommand(c, *certified); };
  });

  CLI::App* exported =
      AddCommand(*group, "export", "Write the rules of a pack in another system's format",
                 "  tenon pack export --format taso matrix.pack -o graph_subst.pb\n"
                 "  tenon pack export --format egg matrix.pack -o rules.rs\n"
                 "A rule that the format cannot carry is left out, named and counted.");
  auto exporting = std::make_shared<PackExportOptions>();
  exported->add_option("pack", exporting->pack, "A path, or NAME@VERSION in the cache")->required();
  exported->add_option("--format", exporting->format, "Who is to read it")
      ->required()
      ->check(CLI::IsMember({"taso", "flexflow", "egg", "dot"}));
  exported->add_option("-o,--out", exporting->out, "Where it goes")->required();
  AddJson(*exported, parsed);
  exported->callback([&parsed, exporting] {
    RequireDistinct({{"--out", exporting->out}, {"--json", parsed.json}});
    parsed.run = [&parsed, exporting](Context& c) {
      exporting->json = parsed.json;
      return ExportPackCommand(c, *exporting);
    };
  });

  CLI::App* merge =
      AddCommand(*group, "merge", "Make one pack of several, without what others derive",
                 "  tenon pack merge matrix.pack conv.pack -o both.pack --name both@1.0.0");
  auto merging = std::make_shared<PackMergeOptions>();
  merge->add_option("packs", merging->packs, "Paths, or NAME@VERSION in the cache")->required();
  merge->add_option("-o,--out", merging->out, "Where it goes")->required();
  merge->add_option("--name", merging->name, "NAME or NAME@VERSION of the pack")->required();
  merge->add_option("--key", merging->key, "Secret key (default: your own)");
  AddJson(*merge, parsed);
  merge->callback([&parsed, merging] {
    RequireDistinct({{"--out", merging->out}, {"--json", parsed.json}});
    parsed.run = [&parsed, merging](Context& c) {
      merging->json = parsed.json;
      return MergePacksCommand(c, *merging);
    };
  });

  CLI::App* diff = AddCommand(*group, "diff", "Compare two packs",
                              "  tenon pack diff old.pack new.pack\n"
                              "  tenon pack diff --content a.pack b.pack\n"
                              "Exit code 0 if they are equal, 1 if not.");
  auto compared = std::make_shared<PackDiffOptions>();
  diff->add_option("a", compared->a, "A path, or NAME@VERSION in the cache")->required();
  diff->add_option("b", compared->b, "Another one")->required();
  diff->add_flag("--content", compared->content,
                 "Compare what is signed only: not who made it, when, and with which version");
  AddJson(*diff, parsed);
  diff->callback([&parsed, compared] {
    parsed.run = [&parsed, compared](Context& c) {
      compared->json = parsed.json;
      return DiffPacksCommand(c, *compared);
    };
  });

  CLI::App* keygen = AddCommand(*group, "keygen", "Make a key pair to sign packs with",
                                "  tenon pack keygen --out team.key    # and team.key.pub");
  auto made = std::make_shared<PackKeygenOptions>();
  keygen->add_option("-o,--out", made->out, "The secret key; the public one goes to FILE.pub")
      ->required();
  keygen->callback([&parsed, made] {
    parsed.run = [made](Context& c) { return GenerateKeyCommand(c, *made); };
  });

  CLI::App* sign = AddCommand(*group, "sign", "Sign a pack with another key",
                              "  tenon pack sign matrix.pack --key team.key");
  auto signed_pack = std::make_shared<PackSignOptions>();
  sign->add_option("pack", signed_pack->pack, "A path")->required();
  sign->add_option("--key", signed_pack->key, "Secret key (default: your own)");
  sign->add_option("-o,--out", signed_pack->out, "Where it goes (default: in place)");
  sign->callback([&parsed, signed_pack] {
    parsed.run = [signed_pack](Context& c) { return SignPackCommand(c, *signed_pack); };
  });
}

void AddCheckCertificates(CLI::App& app, Parsed& parsed) {
  CLI::App* command = AddCommand(
      app, "check-certificates", "Check that every rule of a pack is proved by its certificate",
      "  tenon check-certificates matrix.pack\n"
      "No solver takes part; the program tenon-check does the same and contains none.\n"
      "Exit code 0 if all are proved, 1 if not.");
  auto options = std::make_shared<CheckCertificatesOptions>();
  command->add_option("packs", options->packs, "Paths, or NAME@VERSION in the cache")->required();
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return CheckCertificatesCommand(c, *options);
    };
  });
}

void AddOptimize(CLI::App& app, Parsed& parsed) {
  CLI::App* command = AddCommand(
      app, "optimize", "Make a model faster by proved rules",
      "  tenon optimize model.onnx -o faster.onnx\n"
      "  tenon optimize model.onnx -o faster.onnx --pack matrix.pack --device roofline:weak \\\n"
      "        --alpha 1.5 --time-limit 30 --report report.json\n"
      "  tenon optimize model.onnx -o faster.onnx --server tenon.example:7402 --deadline 120");
  auto options = std::make_shared<OptimizeOptions>();
  OptimizeOptions& o = *options;
  optimizer::RunSettings& s = o.settings;
  command->add_option("model", o.model, "An ONNX model")->required();
  command->add_option("-o,--out", o.out, "Where the optimized model goes")->required();
  command->add_option("--pack", o.packs,
                      "A path, or NAME@VERSION in the cache, or default: the pack that comes with "
                      "tenon, also used when none is named; with --server, of the server's (when "
                      "none is named: all of those); may be repeated");
  command
      ->add_option(
          "--device", s.device,
          "What prices operators: cpu, cpu:threads=N, cuda, roofline:NAME or roofline:FILE")
      ->capture_default_str();
  command->add_option("--cost-cache", s.cost_cache,
                      "Where measured costs are kept (default: ~/.cache/tenon/costs)");
  command
      ->add_option(
          "--search", s.search,
          "backtrack: from one program to the next; eqsat: all programs of a piece at once "
          "(equality saturation), the cheapest of them by proof where possible")
      ->check(CLI::IsMember({"backtrack", "eqsat"}))
      ->capture_default_str();
  command
      ->add_option("--alpha", s.alpha,
                   "Go on from programs that cost up to this many times the best one")
      ->check(CLI::Range(1.0, 100.0) & FiniteNumber())
      ->capture_default_str();
  command->add_option("--time-limit", s.time_limit_s, "Seconds for the search")
      ->check(CLI::PositiveNumber & FiniteNumber())
      ->capture_default_str();
  command
      ->add_option("--check-time-limit", s.check_time_limit_s,
                   "Seconds for the comparison with the original")
      ->check(CLI::PositiveNumber & FiniteNumber())
      ->capture_default_str();
  command
      ->add_option("--tolerance", s.tolerance,
                   "Largest relative error of a result that is written (default: 1e-4, more for "
                   "models in 16 bits)")
      ->check(CLI::PositiveNumber & FiniteNumber());
  command->add_option("--without", s.without,
                      "Leave out rules whose name or text contains this; may be repeated");
  command->add_flag("--fast-math", s.fast_math,
                    "Also apply rules that may change results beyond rounding (class domain)");
  command->add_option("--seed", s.seed, "Of the random inputs of the comparison")
      ->capture_default_str();
  command->add_option("--report", o.report, "Write what was done as JSON, for `tenon explain`");
  AddGate(*command, o.gate);
  AddConnect(*command, o.server);
  command->get_option("--server")
      ->description(
          "HOST:PORT of an optimizer that does it, or several with commas (default: it is done "
          "here)");
  command
      ->add_option("--deadline", o.deadline_s,
                   "Seconds after which a server must have answered; the best it has found by then "
                   "is the result")
      ->check(CLI::PositiveNumber & FiniteNumber())
      ->needs("--server");
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    RequireDistinct({{"-o", options->out},
                     {"--report", options->report},
                     {"--junit", options->gate.junit},
                     {"--markdown", options->gate.markdown},
                     {"--json", parsed.json}});
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return OptimizeCommand(c, *options);
    };
  });
}

void AddExplain(CLI::App& app, Parsed& parsed) {
  CLI::App* command = AddCommand(app, "explain", "Say how a result was reached, from its report",
                                 "  tenon explain report.json\n"
                                 "  tenon explain report.json --svg before_and_after.svg");
  auto options = std::make_shared<ExplainOptions>();
  command->add_option("report", options->report, "The file of `tenon optimize --report`")
      ->required();
  command->add_option("--svg", options->svg, "Draw the model before and after into this file");
  command->add_option("--dot", options->dot, "Write both as Graphviz graphs to this file");
  command->callback([&parsed, options] {
    parsed.run = [options](Context& c) { return ExplainCommand(c, *options); };
  });
}

void AddProfile(CLI::App& app, Parsed& parsed) {
  CLI::App* command = AddCommand(
      app, "profile", "Measure what the operators of models cost on this machine",
      "  tenon profile model.onnx other.onnx\n"
      "  tenon profile model.onnx --device cpu:threads=2 --export costs.json\n"
      "  tenon profile --import costs.json\n"
      "`tenon optimize --device cpu` measures what it misses; after this it misses little.");
  auto options = std::make_shared<ProfileOptions>();
  ProfileOptions& o = *options;
  command->add_option("models", o.models, "ONNX models");
  command->add_option("--device", o.device, "cpu, cpu:threads=N or cuda")->capture_default_str();
  command->add_option("--cost-cache", o.cost_cache,
                      "Where measured costs are kept (default: ~/.cache/tenon/costs)");
  command->add_option("--import", o.import_from, "First add the costs of such a file");
  command->add_option("--export", o.export_to, "Write all costs of the cache to this JSON file");
  AddJson(*command, parsed);
  command->callback([&parsed, options] {
    if (options->models.empty() && options->import_from.empty() && options->export_to.empty()) {
      throw CLI::RequiredError("models, --import or --export");
    }
    parsed.run = [&parsed, options](Context& c) {
      options->json = parsed.json;
      return ProfileCommand(c, *options);
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
  AddGenerate(app, parsed);
  AddProve(app, parsed);
  AddRules(app, parsed);
  AddDerive(app, parsed);
  AddPartial(app, parsed);
  AddPack(app, parsed);
  AddCheckCertificates(app, parsed);
  AddOptimize(app, parsed);
  AddExplain(app, parsed);
  AddProfile(app, parsed);
  AddServices(app, {parsed.json, parsed.console.verbose, parsed.run});
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
  auto arguments = WithConfig({argv + 1, argv + argc});
  if (!arguments.ok()) {
    PrintError(base::Message(arguments.status()));
    return static_cast<int>(ExitCodeOf(arguments.status()));
  }
  std::reverse(arguments->begin(), arguments->end());  // As CLI11 wants it.
  try {
    app.parse(*std::move(arguments));
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

}  // namespace tenon::cli
}  // namespace tenon::cli

int main(int argc, char** argv) { return tenon::cli::Main(argc, argv); }
