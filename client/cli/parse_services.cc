#include "client/cli/parse_services.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>

#include "client/cli/files.h"

namespace tenon::cli {
namespace {

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& what,
                     const std::string& examples = "") {
  CLI::App* command = parent.add_subcommand(name, what);
  command->fallthrough();
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  return command;
}

void AddJson(CLI::App& command, const ServiceParse& parse) {
  command.add_option("--json", parse.json,
                     "Write the result as JSON to this file; with '-' to stdout, and nothing else "
                     "goes there");
}

// `command` runs `function` with options that are filled while the command line is read.
template <class Options>
void Runs(CLI::App* command, const ServiceParse& parse, std::shared_ptr<Options> options,
          Outcome (*function)(Context&, const Options&)) {
  command->callback([parse, options, function] {
    parse.run = [&json = parse.json, options, function](Context& c) {
      if constexpr (requires { options->json; }) {
        options->json = json;
      } else {
        static_cast<void>(json);
      }
      return function(c, *options);
    };
  });
}

void AddOptimizer(CLI::App& command, ServeOptions& o) {
  command
      .add_option("--pack", o.packs,
                  "NAME, NAME@VERSION or NAME@CHANNEL, of the coordinator if one is given, else of "
                  "the cache; or a path; or default, the pack that comes with tenon, also used "
                  "when none is named; may be repeated")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--pack-key", o.pack_key, "Public key that must have signed the packs");
  command.add_option("--refresh", o.refresh_s, "Seconds after which packs are looked at again")
      ->check(CLI::Range(1, 86'400));
  command.add_option("--queue", o.queue, "Models that may wait, besides those that are worked on")
      ->check(CLI::Range(0, 128));
  command.add_option("--per-caller", o.per_caller, "Models of one caller at once")
      ->check(CLI::Range(1, 192));
  command.add_option("--model-limit", o.model_limit_bytes, "Bytes of a model, or 1GiB")
      ->transform(CLI::AsSizeValue(false));
  command.add_option("--cache-limit", o.cache_limit_bytes, "Bytes of results that are kept")
      ->transform(CLI::AsSizeValue(false));
  command
      .add_option("--max-time-limit", o.time_limit_max_s,
                  "Seconds that a call may ask for, for the search and for the comparison")
      ->check(CLI::Range(1.0, 5400.0));
  command
      .add_option("--drain", o.drain_s, "Seconds that models may still be worked on after SIGTERM")
      ->check(CLI::Range(0, 7200));
  if (o.role == "all") {
    command.add_option("--optimizer-listen", o.optimizer_listen,
                       "HOST:PORT of an optimizer (default: there is none)");
  }
}

void AddServe(CLI::App& app, ServiceParse parse) {
  CLI::App* group =
      AddCommand(app, "serve", "Run a service, or all of them on this machine",
                 "  tenon serve all\n"
                 "  tenon serve coordinator --listen 0.0.0.0:7400 --data /var/lib/"
                 "tenon \\\n        --token-file tokens --tls-certificate host.pem "
                 "--tls-key host.key\n"
                 "  tenon serve worker --coordinator tenon.example:7400 --token mine");
  group->require_subcommand(1);
  const std::pair<const char*, const char*> roles[] = {
      {"coordinator", "Jobs, leases, the registry of packs"},
      {"store", "Keeps the records of jobs"},
      {"worker", "Enumerates shards"},
      {"verifier", "Proves rules"},
      {"optimizer", "Optimizes models"},
      {"all", "One of each, on this machine, without any set-up"}};
  for (const auto& [role, what] : roles) {
    CLI::App* command = AddCommand(*group, role, what);
    auto options = std::make_shared<ServeOptions>();
    ServeOptions& o = *options;
    o.role = role;
    command->add_option("--listen", o.listen, "HOST:PORT; port 0: any free one");
    command->add_option(
        "--advertise", o.advertise,
        "HOST:PORT under which others reach this server; port 0: the one it listens on");
    command->add_option("--data", o.data, "Folder of what is kept");
    command->add_option("--coordinator", o.coordinator.server,
                        "HOST:PORT of the coordinator; with commas, of several of which one leads");
    command->add_option("--token", o.coordinator.token_file,
                        "File with the token that this service shows to others");
    command->add_option("--token-file", o.token_file,
                        "Tokens that are accepted, as `tenon token create` writes it");
    command->add_option("--tls-certificate", o.tls_certificate, "PEM file of this server");
    command->add_option("--tls-key", o.tls_key, "PEM file of its key");
    command->add_option("--tls-client-ca", o.tls_client_root,
                        "PEM file; callers must have a certificate that it signed");
    command->add_option("--tls-ca", o.coordinator.root_certificates,
                        "PEM file that signed the certificates of other servers");
    command->add_option("--tls-server-name", o.coordinator.server_name,
                        "Name expected in their certificates");
    command->add_option("--node-id", o.node_id, "Name of this node, unique in the cluster");
    command->add_option("--stores", o.stores, "HOST:PORT,... (default: those that register)");
    command->add_option("--min-stores", o.min_stores, "Jobs wait until so many have registered")
        ->check(CLI::Range(1, 1024));
    command->add_option("--slots", o.slots, "Tasks at a time (default: one a CPU)")
        ->check(CLI::Range(1, 1024));
    command
        ->add_option("--memory-limit", o.memory_limit_bytes,
                     "Bytes of each slot of a worker or an optimizer, or 4GiB")
        ->transform(CLI::AsSizeValue(false));
    command->add_option("--max-graphs", o.max_graphs,
                        "Jobs whose estimate is above this are refused (default: no limit)");
    command->add_option("--key", o.key, "Secret key that signs packs (default: your own)");
    command->add_option("--lease-ttl-ms", o.lease_ttl_ms, "A node silent for so long is lost")
        ->check(CLI::Range(100, 600'000));
    if (o.role == "optimizer" || o.role == "all") AddOptimizer(*command, o);
    if (o.role == "coordinator" || o.role == "all") {
      command->add_option("--etcd", o.etcd,
                          "HOST:PORT,... of etcd: jobs and packs are kept there, and of several "
                          "coordinators one leads");
      command->add_option("--etcd-prefix", o.etcd_prefix, "Of all keys (default: /tenon/)");
      command->add_option("--etcd-ca", o.etcd_root_certificates,
                          "PEM file that signed etcd's certificates");
      command->add_option("--etcd-certificate", o.etcd_certificate,
                          "PEM file that is shown to etcd");
      command->add_option("--etcd-key", o.etcd_key, "PEM file of its key");
      command
          ->add_option("--etcd-lease-ttl", o.etcd_lease_ttl_s,
                       "Seconds after which a leader that is silent is succeeded")
          ->check(CLI::Range(2, 600));
    }
    command
        ->add_option("--disk-reserve", o.disk_reserve_bytes,
                     "A store takes no more while less is free; bytes, or 1GiB")
        ->transform(CLI::AsSizeValue(false));
    command
        ->add_option("--transfer-limit-s", o.transfer_limit_s,
                     "Seconds that sending or fetching a pack may take, one more per MiB")
        ->check(CLI::Range(1, 7200));
    command->add_option("--keep-jobs", o.keep_jobs, "Ended jobs that a coordinator remembers")
        ->check(CLI::Range(1, 1'000'000));
    command->add_option("--keep-jobs-days", o.keep_jobs_days, "For so long, at most")
        ->check(CLI::Range(1, 36'500));
    command->add_option("--metrics-listen", o.metrics_listen,
                        "HOST:PORT of metrics and of the web page");
    command->add_option("--config", "File with `flag = value` lines; flags override it");
    command->callback([parse, options] {
      parse.verbose = true;
      parse.run = [options](Context& c) { return ServeCommand(c, *options); };
    });
  }
  CLI::App* prover = AddCommand(app, "internal-prover", "");
  prover->group("");  // Not listed.
  prover->callback([parse] { parse.run = InternalProverCommand; });
  CLI::App* optimizer = AddCommand(app, "internal-optimizer", "");
  optimizer->group("");
  optimizer->callback([parse] { parse.run = InternalOptimizerCommand; });
}

void AddJobSubmit(CLI::App& group, const ServiceParse& parse) {
  CLI::App* command = AddCommand(group, "submit", "Make a job",
                                 "  tenon job submit --universe matrix --name matrix@1.0.0 --wait");
  auto options = std::make_shared<JobSubmitOptions>();
  JobSubmitOptions& o = *options;
  EnumerationOptions& e = o.enumeration;
  e.shards = 0;
  e.time_limit_s = 0;
  command->add_option("--universe", e.universe, "Its name, or the path of a .textproto file")
      ->required();
  command->add_option("--max-operators", e.max_operators, "Operators of a graph at most")
      ->check(CLI::Range(1, 8));
  command->add_option("--mode", e.mode, "exhaustive or canonical")
      ->check(CLI::IsMember({"exhaustive", "canonical"}));
  command->add_option("--shards", e.shards, "Parts of the enumeration (default: by its size)")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--memory-limit", e.memory_limit_bytes, "Bytes of one slot of a worker, or 4GiB")
      ->transform(CLI::AsSizeValue(false));
  command
      ->add_option("--time-limit", e.time_limit_s,
                   "CPU seconds of the enumeration; a larger estimate is refused")
      ->check(CLI::PositiveNumber);
  command->add_option("--name", o.name, "NAME@VERSION of the pack (default: UNIVERSE@0.1.0)");
  command->add_option("--request-id", o.request_id,
                      "Submitting again with the same one makes no second job");
  command->add_option("--priority", o.priority, "Higher ones are served first")
      ->check(CLI::Range(-100, 100));
  command->add_flag("--wait", o.wait, "Follow the job; exit code 0 if it is done, 1 if it failed");
  command->add_flag("--dry-run", o.dry_run, "Make no job: judge it, and print what it would take")
      ->excludes("--wait");
  AddConnect(*command, o.server);
  AddJson(*command, parse);
  Runs(command, parse, options, SubmitJobCommand);
}

void AddJob(CLI::App& app, const ServiceParse& parse) {
  CLI::App* group = AddCommand(app, "job", "Jobs of a service: submit, watch, control");
  group->require_subcommand(1);
  AddJobSubmit(*group, parse);
  {
    CLI::App* command = AddCommand(*group, "list", "Jobs, newest first");
    auto options = std::make_shared<JobListOptions>();
    command->add_option("--limit", options->limit, "So many at most")->check(CLI::Range(1, 1000));
    command->add_flag("--all", options->all, "Also those that have ended");
    AddConnect(*command, options->server);
    AddJson(*command, parse);
    Runs(command, parse, options, ListJobsCommand);
  }
  const std::tuple<const char*, const char*, Outcome (*)(Context&, const JobOptions&)> looks[] = {
      {"show", "Print what there is to know about a job", ShowJobCommand},
      {"watch", "Follow a job to its end", WatchJobCommand}};
  for (const auto& [name, what, function] : looks) {
    CLI::App* command = AddCommand(*group, name, what);
    auto options = std::make_shared<JobOptions>();
    command->add_option("job", options->id, "Its id")->required();
    AddConnect(*command, options->server);
    AddJson(*command, parse);
    Runs(command, parse, options, function);
  }
  const std::pair<const char*, const char*> controls[] = {
      {"cancel", "End a job without a pack"},
      {"pause", "Start nothing more of a job"},
      {"resume", "Go on with a paused job"},
      {"priority", "Change what is served first"}};
  for (const auto& [name, what] : controls) {
    CLI::App* command = AddCommand(*group, name, what);
    auto options = std::make_shared<JobControlOptions>();
    options->action = name;
    command->add_option("job", options->id, "Its id")->required();
    if (options->action == "priority") {
      command->add_option("priority", options->priority, "-100 to 100")
          ->required()
          ->check(CLI::Range(-100, 100));
    }
    AddConnect(*command, options->server);
    Runs(command, parse, options, ControlJobCommand);
  }
}

void AddStore(CLI::App& app, const ServiceParse& parse) {
  CLI::App* group = AddCommand(app, "store", "Stores of a service: look, check, back up",
                               "  tenon store stats --server 127.0.0.1:7401\n"
                               "  tenon store checkpoint monday --server 127.0.0.1:7401");
  group->require_subcommand(1);
  const std::pair<const char*, const char*> actions[] = {
      {"stats", "What it holds, and what is free"},
      {"verify", "Read everything and check every checksum"},
      {"compact", "Give the space of what was deleted back"},
      {"checkpoint", "Make a consistent copy beside the store"}};
  for (const auto& [name, what] : actions) {
    CLI::App* command = AddCommand(*group, name, what);
    auto options = std::make_shared<StoreOptions>();
    options->action = name;
    if (options->action == "checkpoint") {
      command->add_option("name", options->checkpoint, "Of the copy")->required();
    }
    AddConnect(*command, options->server);
    AddJson(*command, parse);
    Runs(command, parse, options, StoreCommand);
  }
}

void AddToken(CLI::App& app, const ServiceParse& parse) {
  CLI::App* group = AddCommand(app, "token", "Tokens: who may call a service");
  group->require_subcommand(1);
  CLI::App* command = AddCommand(*group, "create", "Make a token; it is printed once, never kept",
                                 "  tenon token create --token-file tokens --name ci --role submit "
                                 "--days 90 > ci.token");
  auto options = std::make_shared<TokenCreateOptions>();
  command->add_option("--token-file", options->file, "A line with its hash is added")->required();
  command->add_option("--name", options->name, "Who will have it")->required();
  command->add_option("--role", options->roles, "read, submit, publish or node; with commas")
      ->required();
  command->add_option("--days", options->days, "Until it expires (default: never)");
  Runs(command, parse, options, CreateTokenCommand);
}

std::string Stripped(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

void AddConnect(CLI::App& command, ConnectOptions& o) {
  command.add_option(
      "--server", o.server,
      "HOST:PORT, or several with commas of which one serves (default: $TENON_SERVER, "
      "else 127.0.0.1:7400)");
  command.add_option("--token", o.token_file, "File with your token (default: $TENON_TOKEN)");
  command.add_flag("--tls", o.tls, "Encrypt, trusting the certificates of this machine");
  command.add_option("--tls-ca", o.root_certificates, "PEM file that signed the server's");
  command.add_option("--tls-certificate", o.certificate, "PEM file of your own");
  command.add_option("--tls-key", o.key, "PEM file of its key");
  command.add_option("--tls-server-name", o.server_name, "Name expected in the server's");
}

void AddRemotePacks(CLI::App& pack, ServiceParse parse) {
  CLI::App* push = AddCommand(pack, "push", "Publish a pack in a registry",
                              "  tenon pack push matrix.pack --channel stable");
  auto pushed = std::make_shared<PackRemoteOptions>();
  push->add_option("pack", pushed->pack, "A path, or NAME@VERSION in the cache")->required();
  push->add_option("--channel", pushed->channel, "Also point this channel at it");
  AddConnect(*push, pushed->server);
  AddJson(*push, parse);
  Runs(push, parse, pushed, PushPackCommand);

  CLI::App* pull = AddCommand(pack, "pull", "Fetch a pack from a registry into the cache",
                              "  tenon pack pull matrix\n  tenon pack pull matrix@1.2.0\n"
                              "  tenon pack pull matrix@stable --key team.pub");
  auto pulled = std::make_shared<PackRemoteOptions>();
  pull->add_option("pack", pulled->pack, "NAME, NAME@VERSION or NAME@CHANNEL")->required();
  pull->add_option("-o,--out", pulled->out, "Write it here instead");
  pull->add_option("--key", pulled->key, "Public key that must have signed it");
  pull->add_flag("--allow-rollback", pulled->rollback,
                 "Take it even if a newer version was seen here");
  AddConnect(*pull, pulled->server);
  AddJson(*pull, parse);
  Runs(pull, parse, pulled, PullPackCommand);
}

void AddServices(CLI::App& app, ServiceParse parse) {
  AddServe(app, parse);
  AddJob(app, parse);
  AddStore(app, parse);
  AddToken(app, parse);
}

StatusOr<std::vector<std::string>> WithConfig(const std::vector<std::string>& arguments) {
  const auto serve = std::find(arguments.begin(), arguments.end(), "serve");
  if (serve == arguments.end()) return arguments;
  std::string path;
  for (auto at = serve; at != arguments.end(); ++at) {
    if (at->starts_with("--config=")) path = at->substr(9);
    if (*at == "--config" && at + 1 != arguments.end()) path = *(at + 1);
  }
  const auto role = std::find_if(serve + 1, arguments.end(),
                                 [](const std::string& a) { return !a.starts_with('-'); });
  if (path.empty() || role == arguments.end()) return arguments;
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  std::vector<std::string> out(arguments.begin(), role + 1);
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = Stripped(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    const std::string name = Stripped(line.substr(0, equals));
    if (equals == std::string::npos || name.empty() || name.starts_with('-')) {
      return base::InvalidArgument(
          fmt::format("{}:{}: write `flag = value`, the flag without --", path, number));
    }
    out.push_back(fmt::format("--{}={}", name, Stripped(line.substr(equals + 1))));
  }
  out.insert(out.end(), role + 1, arguments.end());
  return out;
}

}  // namespace tenon::cli
