// What is seen of `tenon serve`: metrics, health, the web page.
#include <mutex>

#include <fmt/format.h>

#include "client/cli/commands/serving.h"
#include "client/cli/page.h"
#include "client/cli/samples.h"
#include "client/observe/calls.h"
#include "client/observe/http.h"
#include "client/observe/metrics.h"
#include "coordinator/registry/service.h"
#include "coordinator/registry/shelf.h"
#include "coordinator/run/coordinator.h"
#include "coordinator/serve.h"
#include "optimizer/service/serve.h"
#include "store/serve.h"
#include "verifier/serve.h"

namespace tenon::cli {
namespace {

using coordinator::Coordinator;
using observe::Response;

// More than these are no use on a page.
constexpr std::uint32_t kJobsMax = 200;

Response Html(std::string body) { return {200, "text/html; charset=utf-8", std::move(body)}; }

Response NotThere(const Status& status) {
  return {404, "text/plain; charset=utf-8", base::Message(status) + "\n"};
}

PageNode NodeOf(const board::Node& node) {
  const std::chrono::duration<double> ago = std::chrono::steady_clock::now() - node.seen;
  return {node.id,       node.role,   node.address, node.version,
          node.draining, node.silent, node.leases,  ago.count()};
}

convert::UnixTime WallTime() {
  return std::chrono::time_point_cast<convert::Milliseconds>(std::chrono::system_clock::now());
}

Response Overview(const Coordinator& coordinator, const coordinator::PackShelf& shelf) {
  const auto jobs = coordinator.List({.page_size = kJobsMax});
  if (!jobs.ok()) return NotThere(jobs.status());
  const Coordinator::Figures figures = coordinator.figures();
  PageOverview page;
  page.now = WallTime();
  page.jobs = jobs->jobs;
  page.more_jobs = !jobs->next_page_token.empty();
  page.figures = figures.board;
  for (const board::Node& node : figures.nodes) page.nodes.push_back(NodeOf(node));
  const auto entries = shelf.List("");
  if (!entries.ok()) return NotThere(entries.status());
  for (const coordinator::ShelfEntry& e : *entries) {
    page.packs.push_back({fmt::format("{}@{}", e.name, pack::ToString(e.version)), e.address,
                          e.signer, e.rules, e.channels});
  }
  return Html(OverviewPage(page));
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

  // "/", "/jobs/ID", "/packs/NAME@VERSION" of a coordinator; /readyz of an optimizer; /metrics and
  // /healthz of all.
  Response Answer(const std::string& path) {
    if (path == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
    if (path == "/metrics") return {200, "text/plain; version=0.0.4", metrics.Text()};
    const std::lock_guard lock(mutex);
    if (path == "/readyz" && optimizer != nullptr) {
      const bool ready = optimizer->figures().ready;
      return {ready ? 200 : 503, "text/plain; charset=utf-8", ready ? "ok\n" : "not ready\n"};
    }
    if (coordinator == nullptr || shelf == nullptr) {
      return {404, "text/plain; charset=utf-8", "there are /metrics and /healthz here\n"};
    }
    if (path == "/") return Overview(*coordinator, *shelf);
    if (path.starts_with("/jobs/")) {
      const auto job = coordinator->Get(path.substr(6));
      return job.ok() ? Html(JobPage(*job, WallTime())) : NotThere(job.status());
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
  std::mutex mutex;                // Held while a page is made, so that the two below stay.
  Coordinator* coordinator = nullptr;
  const optimizer::Node* optimizer = nullptr;
  std::unique_ptr<observe::HttpServer> server;  // Last: it uses the others.
};

Observed::Observed(Console& console) : impl_(std::make_unique<Impl>(console)) {
  observe::EnableHealthAndReflection();
}
Observed::~Observed() = default;

Status Observed::Start(const std::string& listen, std::string_view role) {
  impl_->metrics.SetBuild(role, TENON_VERSION);
  for (const std::string_view node : {"worker", "verifier"}) {
    if (role == node || role == "all") impl_->metrics.ExpectTasks(node, kOutcomeLabels);
  }
  if (listen.empty()) return OkStatus();
  ASSIGN_OR_RETURN(impl_->server, observe::HttpServer::Start(
                                      listen, [impl = impl_.get()](const std::string& path) {
                                        return impl->Answer(path);
                                      }));
  impl_->console.Print(fmt::format("metrics listen on port {}", impl_->server->port()));
  return OkStatus();
}

void Observed::OnNode(std::string_view role, const rpc::NodeEvent& event) {
  impl_->metrics.OnTask(role, LabelOf(event.kind));
}

void Observed::Observe(coordinator::ServeOptions& options,
                       std::chrono::milliseconds transfer_limit) {
  options.make_sink = [this](board::Journal& journal) {
    const std::lock_guard lock(impl_->mutex);
    impl_->shelf = std::make_shared<coordinator::PackShelf>(journal);
    return coordinator::MakeShelfSink(impl_->shelf);
  };
  options.customize = [this, transfer_limit](grpc::ServerBuilder& builder) {
    impl_->registry = coordinator::AddRegistry(builder, impl_->shelf, transfer_limit);
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
    impl_->metrics.Ask("coordinator", [&coordinator] { return SamplesOf(coordinator.figures()); });
  };
  options.on_stopping = [this] {
    impl_->metrics.OnLeading(false);
    impl_->metrics.Forget("coordinator");
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
  options.on_started = [this](const store::Server& server) {
    impl_->metrics.Ask("store", [&server] { return SamplesOf(server.figures()); });
  };
  options.on_stopping = [this] { impl_->metrics.Forget("store"); };
}

void Observed::Observe(verifier::ServeOptions& options) {
  impl_->metrics.ExpectVerdicts(kVerdictLabels);
  options.on_verdict = [this](const convert::ProofVerdict& verdict, std::chrono::microseconds cpu) {
    impl_->metrics.OnVerdict(LabelOf(verdict.kind), verdict.repeatable, double(cpu.count()) / 1e6);
  };
}

void Observed::Observe(optimizer::ServeOptions& options) {
  impl_->metrics.ExpectOptimizations(kCallLabels);
  options.customize = [this](grpc::ServerBuilder& builder) {
    observe::ObserveCalls(builder, [this](auto method, auto code, double seconds) {
      impl_->metrics.OnCall(method, code, seconds);
    });
  };
  options.on_started = [this](const optimizer::Node& node) {
    impl_->metrics.Ask("optimizer", [&node] { return SamplesOf(node.figures()); });
    const std::lock_guard lock(impl_->mutex);
    impl_->optimizer = &node;
  };
  options.on_stopping = [this] {
    impl_->metrics.Forget("optimizer");
    const std::lock_guard lock(impl_->mutex);
    impl_->optimizer = nullptr;
  };
  options.on_call = [this](const optimizer::EndedCall& call) {
    impl_->metrics.OnOptimize(LabelOf(call.outcome), double(call.took.count()) / 1000);
    Console::Fields fields{{"role", "optimizer"},
                           {"request", call.request_id},
                           {"caller", call.caller},
                           {"outcome", std::string(LabelOf(call.outcome))},
                           {"ms", std::to_string(call.took.count())},
                           {"bytes", std::to_string(call.model_bytes)}};
    if (!call.status.ok()) fields.emplace_back("detail", base::Message(call.status));
    impl_->console.Log("call ended", fields);
  };
}

}  // namespace tenon::cli
