// What is seen of `tenon serve`: metrics, health, the web page.
#include <atomic>
#include <mutex>

#include <fmt/format.h>

#include "client/cli/commands/serving.h"
#include "client/cli/page.h"
#include "client/observe/calls.h"
#include "client/observe/http.h"
#include "client/observe/metrics.h"
#include "coordinator/registry/service.h"
#include "coordinator/registry/shelf.h"
#include "coordinator/run/coordinator.h"
#include "coordinator/serve.h"
#include "store/serve.h"
#include "verifier/serve.h"

namespace tenon::cli {
namespace {

using coordinator::Coordinator;
using observe::Response;
using observe::Sample;

std::string_view NameOf(convert::VerdictKind kind) {
  switch (kind) {
    case convert::VerdictKind::kProved:
      return "proved";
    case convert::VerdictKind::kRefuted:
      return "refuted";
    case convert::VerdictKind::kUnproved:
      return "unproved";
    case convert::VerdictKind::kUnknown:
      return "unknown";
    case convert::VerdictKind::kIllFormed:
      return "ill_formed";
    case convert::VerdictKind::kVacuous:
      return "vacuous";
  }
  return "unknown";
}

std::string_view OutcomeOf(rpc::NodeEvent::Kind kind) {
  using Kind = rpc::NodeEvent::Kind;
  switch (kind) {
    case Kind::kLeased:
      return "leased";
    case Kind::kCompleted:
      return "completed";
    case Kind::kUnneeded:
      return "unneeded";
    case Kind::kReleased:
      return "released";
    case Kind::kLost:
      return "lost";
    case Kind::kTrouble:
      return "trouble";
  }
  return "trouble";
}

StatusOr<std::vector<convert::Job>> JobsOf(const Coordinator& coordinator) {
  std::vector<convert::Job> jobs;
  convert::ListJobs request{.page_size = 1000};
  // More than these are no use on a page, and too many to add up.
  for (int page = 0; page < 10; ++page) {
    ASSIGN_OR_RETURN(auto listed, coordinator.List(request));
    for (convert::Job& job : listed.jobs) jobs.push_back(std::move(job));
    if (listed.next_page_token.empty()) break;
    request.page_token = listed.next_page_token;
  }
  return jobs;
}

std::vector<Sample> SamplesOf(const Coordinator& coordinator) {
  std::vector<Sample> out;
  const auto add = [&](const char* name, const char* help, bool counter,
                       std::vector<std::pair<std::string, std::string>> labels, auto value) {
    out.push_back({name, help, counter, std::move(labels), static_cast<double>(value)});
  };
  const Coordinator::Figures figures = coordinator.figures();
  add("tenon_open_tasks", "Tasks that wait for a node", false, {}, figures.open_tasks);
  add("tenon_leases", "Tasks that nodes work on", false, {}, figures.leases);
  add("tenon_waiting_nodes", "Calls that wait for something to do", false, {}, figures.waiters);
  std::map<std::string, std::uint64_t> nodes{{"store", 0}, {"verifier", 0}, {"worker", 0}};
  for (const auto& node : figures.nodes) ++nodes[node.role];
  for (const auto& [role, count] : nodes) {
    add("tenon_nodes", "Nodes that send heartbeats", false, {{"role", role}}, count);
  }
  const auto jobs = JobsOf(coordinator);
  if (!jobs.ok()) return out;
  std::map<std::string, std::uint64_t> states;
  for (int s = int(convert::JobState::kSubmitted); s <= int(convert::JobState::kCancelled); ++s) {
    states[std::string(convert::NameOf(convert::JobState(s)))] = 0;
  }
  std::uint64_t graphs = 0, shards = 0, set_aside = 0, rules = 0, shards_left = 0, proofs_left = 0;
  double cpu = 0;
  for (const convert::Job& job : *jobs) {
    ++states[std::string(convert::NameOf(job.state))];
    graphs += job.counts.graphs;
    shards += job.shards_done;
    set_aside += job.set_aside.size();
    rules += job.counts.rules;
    cpu += double(job.cpu.count()) / 1000;
    if (convert::HasEnded(job.state)) continue;
    shards_left += job.shards_total - job.shards_done;
    proofs_left += job.proofs_total - job.proofs_done;
  }
  for (const auto& [state, count] : states) {
    add("tenon_jobs", "Jobs by state", false, {{"state", state}}, count);
  }
  add("tenon_graphs_total", "Graphs that jobs have enumerated", true, {}, graphs);
  add("tenon_shards_total", "Shards that are done", true, {}, shards);
  add("tenon_shards_set_aside", "Shards that were given up", false, {}, set_aside);
  add("tenon_rules_total", "Rules that jobs have published", true, {}, rules);
  add("tenon_job_cpu_seconds_total", "CPU time of nodes for jobs", true, {}, cpu);
  add("tenon_shards_left", "Shards of open jobs to be done", false, {}, shards_left);
  add("tenon_proofs_left", "Proofs of open jobs to be done", false, {}, proofs_left);
  return out;
}

Response Html(std::string body) { return {200, "text/html; charset=utf-8", std::move(body)}; }

Response NotThere(const Status& status) {
  return {404, "text/plain; charset=utf-8", base::Message(status) + "\n"};
}

Response Overview(const Coordinator& coordinator, const coordinator::PackShelf& shelf) {
  const auto jobs = JobsOf(coordinator);
  if (!jobs.ok()) return NotThere(jobs.status());
  std::vector<PageNode> nodes;
  for (const auto& node : coordinator.figures().nodes) {
    const std::chrono::duration<double> ago = std::chrono::steady_clock::now() - node.seen;
    nodes.push_back({node.id, node.role, node.address, node.draining, node.leases, ago.count()});
  }
  const auto entries = shelf.List("");
  if (!entries.ok()) return NotThere(entries.status());
  std::vector<PagePack> packs;
  for (const coordinator::ShelfEntry& e : *entries) {
    packs.push_back({fmt::format("{}@{}", e.name, pack::ToString(e.version)), e.address, e.signer,
                     e.rules, e.channels});
  }
  return Html(OverviewPage(*jobs, nodes, packs));
}

StatusOr<std::string> Pack(const coordinator::PackShelf& shelf, const std::string& reference) {
  const std::size_t at = reference.find('@');
  if (at == std::string::npos) return base::NotFound("there is no such pack");
  ASSIGN_OR_RETURN(const coordinator::ShelfEntry entry,
                   shelf.Find(reference.substr(0, at), {.version = reference.substr(at + 1)}));
  ASSIGN_OR_RETURN(const std::string file, shelf.Read(entry));
  ASSIGN_OR_RETURN(const registry::PackFile pack, registry::DecodePackFile(file));
  return PackPage(pack);
}

}  // namespace

struct Observed::Impl {
  explicit Impl(Console& c) : console(c) {}

  // "/", "/jobs/ID", "/packs/NAME@VERSION" of a coordinator; /metrics and /healthz of all.
  Response Answer(const std::string& path) {
    if (path == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
    if (path == "/metrics") return {200, "text/plain; version=0.0.4", metrics.Text()};
    const std::lock_guard lock(mutex);
    if (coordinator == nullptr || shelf == nullptr) {
      return {404, "text/plain; charset=utf-8", "there are /metrics and /healthz here\n"};
    }
    if (path == "/") return Overview(*coordinator, *shelf);
    if (path.starts_with("/jobs/")) {
      const auto job = coordinator->Get(path.substr(6));
      return job.ok() ? Html(JobPage(*job)) : NotThere(job.status());
    }
    if (path.starts_with("/packs/")) {
      const auto page = Pack(*shelf, path.substr(7));
      return page.ok() ? Html(*page) : NotThere(page.status());
    }
    return NotThere(base::NotFound("there is no such page"));
  }

  Console& console;
  observe::Metrics metrics;
  std::shared_ptr<coordinator::PackShelf> shelf;
  std::shared_ptr<void> registry;  // The service.
  std::mutex mutex;                // Held while a page is made, so that the coordinator stays.
  Coordinator* coordinator = nullptr;
  std::unique_ptr<observe::HttpServer> server;  // Last: it uses the others.
};

Observed::Observed(Console& console) : impl_(std::make_unique<Impl>(console)) {
  observe::EnableHealthAndReflection();
}
Observed::~Observed() = default;

Status Observed::Start(const std::string& listen) {
  if (listen.empty()) return OkStatus();
  ASSIGN_OR_RETURN(impl_->server, observe::HttpServer::Start(
                                      listen, [impl = impl_.get()](const std::string& path) {
                                        return impl->Answer(path);
                                      }));
  impl_->console.Print(fmt::format("metrics listen on port {}", impl_->server->port()));
  return OkStatus();
}

void Observed::OnNode(std::string_view role, const rpc::NodeEvent& event) {
  impl_->metrics.OnTask(role, OutcomeOf(event.kind));
}

void Observed::Observe(coordinator::ServeOptions& options) {
  options.make_sink = [this](board::Journal& journal) {
    const std::lock_guard lock(impl_->mutex);
    impl_->shelf = std::make_shared<coordinator::PackShelf>(journal);
    return coordinator::MakeShelfSink(impl_->shelf);
  };
  options.customize = [this](grpc::ServerBuilder& builder) {
    impl_->registry = coordinator::AddRegistry(builder, impl_->shelf);
    observe::ObserveCalls(builder, [this](auto method, auto code, double seconds) {
      impl_->metrics.OnCall(method, code, seconds);
    });
    return OkStatus();
  };
  impl_->metrics.OnLeading(false);
  options.etcd.on_call = [this](auto call, bool ok, std::chrono::microseconds took) {
    impl_->metrics.OnEtcd(call, ok, double(took.count()) / 1e6);
  };
  options.on_started = [this](Coordinator& coordinator) {
    impl_->metrics.OnLeading(true);
    const std::lock_guard lock(impl_->mutex);
    impl_->coordinator = &coordinator;
    impl_->metrics.Ask([&coordinator] { return SamplesOf(coordinator); });
  };
  options.on_stopping = [this] {
    impl_->metrics.OnLeading(false);
    impl_->metrics.Forget();
    const std::lock_guard lock(impl_->mutex);
    impl_->coordinator = nullptr;
  };
}

void Observed::Observe(store::ServeOptions& options) {
  options.customize = [this](grpc::ServerBuilder& builder) {
    observe::ObserveCalls(builder, [this](auto method, auto code, double seconds) {
      impl_->metrics.OnCall(method, code, seconds);
    });
  };
}

void Observed::Observe(verifier::ServeOptions& options) {
  options.on_verdict = [this](const convert::ProofVerdict& verdict, std::chrono::microseconds cpu) {
    impl_->metrics.OnVerdict(NameOf(verdict.kind), verdict.repeatable, double(cpu.count()) / 1e6);
  };
}

}  // namespace tenon::cli
