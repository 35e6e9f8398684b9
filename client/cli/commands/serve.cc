// tenon serve coordinator | store | worker | verifier | optimizer | all
//
// Wiring only: flags become the options of the roles' entries, and each role runs in a thread of
// its own until a stop is requested or one of them fails.
#include <malloc.h>
#include <sys/resource.h>

#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "client/cli/commands/packs.h"
#include "client/cli/commands/serve_optimizer.h"
#include "client/cli/commands/serving.h"
#include "client/cli/files.h"
#include "client/registry/file.h"
#include "client/registry/keys.h"
#include "coordinator/serve.h"
#include "core/base/mutex.h"
#include "store/serve.h"
#include "verifier/child.h"
#include "verifier/serve.h"
#include "worker/serve.h"

namespace tenon::cli {
namespace {

StatusOr<std::string> DataFolder(const ServeOptions& options) {
  if (!options.data.empty()) return options.data;
  const char* xdg = std::getenv("XDG_STATE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/tenon";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.local/state/tenon";
  return base::InvalidArgument("neither HOME nor XDG_STATE_HOME is set; give --data FOLDER");
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

// The id of a store: made once, kept beside it, since jobs remember their stores by it.
StatusOr<std::string> StoreId(const std::string& path) {
  const auto there = registry::ReadFile(path, 100);
  if (there.ok()) return there->substr(0, there->find('\n'));
  if (!absl::IsNotFound(there.status())) return there.status();
  std::string id = rpc::NewNodeId();
  RETURN_IF_ERROR(registry::WriteFile(path, id + "\n"));
  return id;
}

unsigned Slots(const ServeOptions& options) {
  return options.slots > 0 ? options.slots : std::max(1U, std::thread::hardware_concurrency());
}

// What all roles of this process share.
struct Node {
  Context& context;
  const ServeOptions& options;
  std::string data;
  Security security;
  rpc::ConnectionOptions connection;  // To the other services.
  std::string coordinator;            // HOST:PORT
  Observed& observed;
};

void Listening(const Node& node, const char* role, int port) {
  node.context.console.Print(fmt::format("{} listens on port {}", role, port));
  node.context.console.Log("listening", {{"role", role}, {"port", std::to_string(port)}});
}

std::function<void(const rpc::NodeEvent&)> Events(const Node& node, const char* role) {
  return [&node, role](const rpc::NodeEvent& event) {
    node.observed.OnNode(role, event);
    Console::Fields fields{{"role", role}};
    AddTask(event.task, fields);
    if (!event.message.empty()) fields.emplace_back("detail", event.message);
    node.context.console.Log(NameOf(event.kind), fields);
  };
}

StatusOr<coordinator::EtcdOptions> Etcd(const ServeOptions& o) {
  coordinator::EtcdOptions out{.endpoints = o.etcd,
                               .prefix = o.etcd_prefix,
                               .lease_ttl = std::chrono::seconds(o.etcd_lease_ttl_s)};
  if (o.etcd_prefix.empty()) return base::InvalidArgument("--etcd-prefix: it cannot be empty");
  ConnectOptions files{.root_certificates = o.etcd_root_certificates,
                       .certificate = o.etcd_certificate,
                       .key = o.etcd_key};
  ASSIGN_OR_RETURN(const rpc::ConnectionOptions read, ReadConnection(files));
  out.credentials = read.credentials;
  out.credentials.token.clear();  // That of $TENON_TOKEN is not etcd's.
  return out;
}

Status RunCoordinator(const Node& node, std::stop_token stop, const std::function<void(int)>& up) {
  const ServeOptions& o = node.options;
  coordinator::ServeOptions out;
  out.listen = o.listen.empty() ? kDefaultServer : o.listen;
  out.data_directory = node.data + "/coordinator";
  ASSIGN_OR_RETURN(out.etcd, Etcd(o));
  out.advertise = o.advertise;
  // In one process with a store, which has that port: only the host is the same.
  if (o.role == "all" && !o.advertise.empty()) {
    out.advertise = o.advertise.substr(0, o.advertise.rfind(':')) + ":0";
  }
  out.stores = Split(o.stores);
  out.min_stores = o.min_stores;
  out.lease_ttl = std::chrono::milliseconds(o.lease_ttl_ms);
  out.ended_jobs_max = o.keep_jobs;
  out.ended_jobs_kept_for = std::chrono::hours(24 * o.keep_jobs_days);
  out.code_version = TENON_VERSION;
  out.to_stores = node.connection;
  ASSIGN_OR_RETURN(out.credentials, node.security.Credentials());
  out.signing_key_file = o.key;
  if (o.key.empty()) {
    RETURN_IF_ERROR(ReadSigningKey("").status());  // Made on first use.
    ASSIGN_OR_RETURN(const std::string folder, registry::ConfigDirectory());
    out.signing_key_file = folder + "/key";
  }
  out.job_graphs_max = o.max_graphs;
  out.estimate = EstimateJob;
  out.log = [&](std::string_view event, std::string_view about, std::string_view detail) {
    Console::Fields fields{{"role", "coordinator"}};
    AddTask(std::string(about), fields);
    if (!detail.empty()) fields.emplace_back("detail", detail);
    node.context.console.Log(event, fields);
  };
  out.on_listening = [&](int port) {
    Listening(node, "coordinator", port);
    up(port);
  };
  node.observed.Observe(out, std::chrono::seconds(o.transfer_limit_s));
  return coordinator::Serve(out, std::move(stop));
}

Status RunStore(const Node& node, std::stop_token stop) {
  const ServeOptions& o = node.options;
  store::ServeOptions out;
  out.directory = node.data + "/store";
  if (o.role == "store") out.listen = o.listen.empty() ? "127.0.0.1:7401" : o.listen;
  ASSIGN_OR_RETURN(out.credentials, node.security.Credentials());
  out.coordinator = node.coordinator;
  out.connection = node.connection;
  out.node_id = o.node_id;
  if (out.node_id.empty()) {
    ASSIGN_OR_RETURN(out.node_id, StoreId(node.data + "/store.id"));
  }
  out.advertise = o.advertise;
  out.version = TENON_VERSION;
  out.disk_reserve_bytes = o.disk_reserve_bytes;
  out.transfer_limit = std::chrono::seconds(o.transfer_limit_s);
  out.on_listening = [&](int port) { Listening(node, "store", port); };
  node.observed.Observe(out);
  return store::Serve(out, std::move(stop));
}

Status RunWorker(const Node& node, std::stop_token stop) {
  worker::ServeOptions out;
  out.coordinator = node.coordinator;
  out.connection = node.connection;
  out.node_id = node.options.role == "worker" ? node.options.node_id : "";
  out.version = TENON_VERSION;
  out.slots = Slots(node.options);
  out.memory_limit_bytes = node.options.memory_limit_bytes;
  out.on_event = Events(node, "worker");
  node.context.console.Log("working", {{"role", "worker"}, {"slots", std::to_string(out.slots)}});
  return worker::Serve(out, std::move(stop));
}

Status RunVerifier(const Node& node, std::stop_token stop) {
  verifier::ServeOptions out;
  out.coordinator = node.coordinator;
  out.connection = node.connection;
  out.node_id = node.options.role == "verifier" ? node.options.node_id : "";
  out.version = TENON_VERSION;
  out.proofs = Slots(node.options);
  out.prover_command = {"/proc/self/exe", "internal-prover"};
  out.on_event = Events(node, "verifier");
  node.observed.Observe(out);
  node.context.console.Log("working",
                           {{"role", "verifier"}, {"proofs", std::to_string(out.proofs)}});
  return verifier::Serve(out, std::move(stop));
}

// `coordinator`: whose registry has the packs; empty: none.
Status RunOptimizer(const Node& node, const std::string& coordinator, std::stop_token stop) {
  ASSIGN_OR_RETURN(optimizer::ServeOptions out,
                   ReadOptimizer(node.context, node.options, node.data, coordinator,
                                 node.connection, node.security, Slots(node.options)));
  out.on_listening = [&](int port) { Listening(node, "optimizer", port); };
  node.observed.Observe(out);
  return optimizer::Serve(out, std::move(stop));
}

// Each caller is a file for the system, and what cannot be opened any more fails: as many as we may
// have. The usual 1,024 is a limit for programs that use select().
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// What a burst of calls or a job has used and let go would stay with the allocator, in pieces
// between others, for as long as the process lives: it goes back to the system now and then.
void ReturnFreedMemory(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    base::SleepFor(std::chrono::seconds(10), stop);
    malloc_trim(0);
  }
}

// Threads of roles. The first one that fails stops the others.
class Roles {
 public:
  explicit Roles(std::stop_token stop)
      : forward_(std::move(stop), [this] { stop_.request_stop(); }) {}
  void Start(std::function<Status(std::stop_token)> role) {
    threads_.emplace_back([this, role = std::move(role)] {
      const Status status = role(stop_.get_token());
      const std::lock_guard lock(mutex_);
      if (!status.ok() && first_.ok() && !stop_.stop_requested()) first_ = status;
      stop_.request_stop();
    });
  }
  std::stop_token token() const { return stop_.get_token(); }
  Status Join() {
    for (std::thread& thread : threads_) thread.join();
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_;
  std::mutex mutex_;
  Status first_;
  std::vector<std::thread> threads_;
};

// Where a server of this machine that listens on `listen` is reached from here.
std::string HostToReach(const std::string& listen) {
  const std::string host = listen.substr(0, listen.rfind(':'));
  const bool any = host.empty() || host == "0.0.0.0" || host == "[::]";
  return any ? "127.0.0.1" : host;
}

Status RunAll(Node& node, Roles& roles) {
  // The coordinator is listening before the others look for it.
  auto up = std::make_shared<std::promise<int>>();
  auto port = up->get_future();
  roles.Start([&node, up](std::stop_token stop) {
    return RunCoordinator(node, std::move(stop), [up](int p) { up->set_value(p); });
  });
  while (port.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    if (roles.token().stop_requested()) return OkStatus();
  }
  if (node.options.etcd.empty() || node.options.coordinator.server.empty()) {
    node.coordinator = fmt::format("{}:{}", HostToReach(node.options.listen), port.get());
  }
  roles.Start([&node](std::stop_token stop) { return RunStore(node, std::move(stop)); });
  roles.Start([&node](std::stop_token stop) { return RunWorker(node, std::move(stop)); });
  roles.Start([&node](std::stop_token stop) { return RunVerifier(node, std::move(stop)); });
  if (!node.options.optimizer_listen.empty()) {
    roles.Start([&node](std::stop_token stop) {
      return RunOptimizer(node, node.coordinator, std::move(stop));
    });
  }
  return OkStatus();
}

}  // namespace

Outcome ServeCommand(Context& context, const ServeOptions& options) {
  ASSIGN_OR_RETURN(std::string data, DataFolder(options));
  ASSIGN_OR_RETURN(Security security, Security::Read(options));
  ASSIGN_OR_RETURN(rpc::ConnectionOptions connection, ReadConnection(options.coordinator));
  if (options.role == "all") security.AddOwnToken(connection.credentials.token);
  AllowManyFiles();
  const std::string& role = options.role;
  if (role != "worker" && role != "verifier") {
    RETURN_IF_ERROR(registry::MakeDirectories(data, 0700));
  }
  Observed observed(context.console);
  RETURN_IF_ERROR(observed.Start(options.metrics_listen, role));
  std::string coordinator = options.coordinator.server;
  if (coordinator.empty()) coordinator = kDefaultServer;
  Node node{context,     options, std::move(data), std::move(security), std::move(connection),
            coordinator, observed};
  const std::jthread memory(ReturnFreedMemory);
  Roles roles(context.interrupt.token());
  Status started;
  if (role == "coordinator") {
    roles.Start([&](std::stop_token stop) { return RunCoordinator(node, stop, [](int) {}); });
  } else if (role == "store") {
    roles.Start([&](std::stop_token stop) { return RunStore(node, stop); });
  } else if (role == "worker") {
    roles.Start([&](std::stop_token stop) { return RunWorker(node, stop); });
  } else if (role == "verifier") {
    roles.Start([&](std::stop_token stop) { return RunVerifier(node, stop); });
  } else if (role == "optimizer") {
    // Without an address there is no registry: the usual one is for those who need it.
    roles.Start(
        [&](std::stop_token stop) { return RunOptimizer(node, options.coordinator.server, stop); });
  } else {
    started = RunAll(node, roles);
  }
  const Status ended = roles.Join();
  RETURN_IF_ERROR(started);
  RETURN_IF_ERROR(ended);
  context.console.Log("stopped", {{"role", role}});
  return ExitCode::kDone;
}

Outcome InternalProverCommand(Context&) {
  // The parent decides when this ends, by closing the pipe or by killing.
  return verifier::RunProverChild(0, 1) == 0 ? ExitCode::kDone : ExitCode::kInternal;
}

}  // namespace tenon::cli
