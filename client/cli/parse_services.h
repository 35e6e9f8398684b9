// The part of the command line that is about services: serve, job, store, token, and packs of a
// registry. Apart from main.cc for the sake of compile time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cli/commands/services.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tenon::cli {

// What main does once all of the command line was read.
struct ServiceParse {
  std::string& json;  // Where --json of the one named command is parsed to.
  bool& verbose;      // Set by what serves: its log is its output.
  std::function<Outcome(Context&)>& run;
};

void AddServices(CLI::App& app, ServiceParse parse);
// push and pull, below `tenon pack`.
void AddRemotePacks(CLI::App& pack, ServiceParse parse);
// --server, --token and --tls-..., for a command that can do with or without a service.
void AddConnect(CLI::App& command, ConnectOptions& options);

// `arguments` of main with `--config FILE` of `tenon serve` replaced by what the file says, before
// the other flags, so that those win (docs/serving.md). InvalidArgument names file and line.
StatusOr<std::vector<std::string>> WithConfig(const std::vector<std::string>& arguments);

}  // namespace tenon::cli
