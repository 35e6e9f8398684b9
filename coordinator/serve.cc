#include "coordinator/serve.h"

#include <algorithm>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "client/registry/artifact.h"
#include "client/registry/keys.h"
#include "client/rpc/store_client.h"
#include "coordinator/etcd/journal.h"
#include "coordinator/etcd/leadership.h"
#include "coordinator/run/coordinator.h"
#include "coordinator/service.h"
#include "coordinator/standby/service.h"
#include "core/pack/pack.h"
#include "proto/convert/universe.h"
#include "store/store.h"

namespace tenon::coordinator {
namespace {

constexpr std::uint64_t kArtifactBytesMax = std::uint64_t{16} << 30;
constexpr std::chrono::seconds kPortPatience{5};

board::Now SystemTime() {
  return {std::chrono::steady_clock::now(),
          std::chrono::time_point_cast<convert::Milliseconds>(std::chrono::system_clock::now())};
}

StatusOr<rpc::StoreClient> ClientOf(const std::string& endpoint, const ServeOptions& options,
                                    rpc::Milliseconds patience) {
  ASSIGN_OR_RETURN(auto connection, rpc::Connection::Open(endpoint, options.to_stores));
  return rpc::StoreClient(std::move(connection), patience);
}

StatusOr<graph::TermClasses> ReadClasses(const board::Collected& job, const ServeOptions& options,
                                         std::stop_token stop) {
  if (job.result.artifact_bytes > kArtifactBytesMax) {
    return base::DataLoss(
        fmt::format("classes of {} bytes: more than can be", job.result.artifact_bytes));
  }
  ASSIGN_OR_RETURN(const rpc::StoreClient client,
                   ClientOf(job.stores.endpoints.at(0), options, std::chrono::seconds(30)));
  ASSIGN_OR_RETURN(
      const std::string bytes,
      registry::GetArtifact(client, job.stores.table, job.artifact, job.result.artifact_bytes,
                            job.result.artifact_sha256, std::move(stop)));
  ASSIGN_OR_RETURN(const graph::Universe universe,
                   convert::ParseUniverse(job.spec.universe, job.id));
  return graph::DecodeClasses(universe, bytes);
}

Status DropTable(const board::Table& table, const ServeOptions& options, std::stop_token stop) {
  Status first;
  for (const std::string& endpoint : table.endpoints) {
    if (stop.stop_requested()) return absl::CancelledError("the coordinator stops");
    ASSIGN_OR_RETURN(const rpc::StoreClient client,
                     ClientOf(endpoint, options, std::chrono::seconds(2)));
    const Status status = client.DropTable(table.table);
    if (first.ok()) first = status;
  }
  return first;
}

// All stores must have room for their share, so the fullest one decides.
std::optional<std::uint64_t> DiskFree(const std::vector<std::string>& endpoints,
                                      const ServeOptions& options) {
  std::uint64_t least = UINT64_MAX;
  for (const std::string& endpoint : endpoints) {
    const auto client = ClientOf(endpoint, options, std::chrono::seconds(2));
    if (!client.ok()) return std::nullopt;
    const auto stats = client->Stats();
    // Whether it works at all shows soon enough.
    if (!stats.ok()) return std::nullopt;
    least = std::min(least, stats->disk_free_bytes);
  }
  return least > UINT64_MAX / endpoints.size() ? UINT64_MAX : least * endpoints.size();
}

// As `make`, again for a while when it is UNAVAILABLE: a port that this process has just given back
// may take a moment to be free.
template <class Make>
auto Patiently(const Make& make, const std::stop_token& stop) {
  const auto end = std::chrono::steady_clock::now() + kPortPatience;
  while (true) {
    auto made = make();
    if (made.ok() || stop.stop_requested() || std::chrono::steady_clock::now() > end) return made;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Serves from a journal until `stop`. `ready`: the jobs are read, and the port is about to be
// bound.
Status ServeTerm(const ServeOptions& options, board::Journal& journal,
                 const registry::SigningKey* key, std::function<Status()> leads,
                 const std::function<void()>& ready, std::stop_token stop) {
  const auto sink = options.make_sink ? options.make_sink(journal) : MakeJournalSink(journal);
  std::random_device device;
  World world{
      .journal = journal,
      .sink = *sink,
      .key = key,
      .code_version = options.code_version,
      .now = SystemTime,
      .leads = std::move(leads),
      .read_classes = [&](const board::Collected& job,
                          std::stop_token s) { return ReadClasses(job, options, s); },
      .drop_table = [&](const board::Table& table,
                        std::stop_token s) { return DropTable(table, options, s); },
      .estimate = options.estimate,
      .disk_free =
          [&](const std::vector<std::string>& stores) { return DiskFree(stores, options); },
      .limits = {.memory_bytes = options.worker_memory_bytes, .graphs = options.job_graphs_max},
      .log = options.log};
  board::Options board;
  board.lease_ttl = options.lease_ttl;
  board.straggler_min = options.straggler_min;
  board.waiting_jobs_max = options.waiting_jobs_max;
  board.proofs_per_task = options.proofs_per_task;
  board.ended_jobs_max = options.ended_jobs_max;
  board.ended_jobs_kept_for = options.ended_jobs_kept_for;
  board.worker_memory_bytes = options.worker_memory_bytes;
  board.semantics_version = pack::kSemanticsVersion;
  board.stores = options.stores;
  board.min_stores = options.min_stores;
  board.random = [&] { return std::uint64_t{device()} << 32 | device(); };
  ASSIGN_OR_RETURN(const auto coordinator,
                   Coordinator::Start(std::move(world), board, options.running_jobs_max));
  if (options.on_started) options.on_started(*coordinator);
  if (ready) ready();
  const auto serve = [&] { return ServeGrpc(options, *coordinator, stop); };
  const Status served = ready ? Patiently(serve, stop) : serve();
  if (options.on_stopping) options.on_stopping();
  return served;
}

// Standby and leader by turns, on one port.
class Turns {
 public:
  Turns(ServeOptions options, const registry::SigningKey* key)
      : options_(std::move(options)), key_(key) {}

  Status Run(const std::stop_token& stop) {
    const EtcdOptions& etcd = options_.etcd;
    const rpc::Milliseconds ttl(etcd.lease_ttl);
    ASSIGN_OR_RETURN(const auto client, etcd::Client::Open({.endpoints = etcd.endpoints,
                                                            .credentials = etcd.credentials,
                                                            .lease_attempt = ttl / 5,
                                                            .on_call = etcd.on_call}));
    while (!stop.stop_requested()) {
      RETURN_IF_ERROR(StandBy(stop));
      auto leadership = Leadership::Win(*client, Campaign(), stop);
      if (stop.stop_requested()) break;
      RETURN_IF_ERROR(leadership.status());
      std::stop_source ends;
      const auto end = [&ends] { ends.request_stop(); };
      const std::stop_callback stopped(stop, end);
      const std::stop_callback lost((*leadership)->lost(), end);
      const Status status = Lead(*client, **leadership, ends.get_token());
      if (stop.stop_requested()) return status;
      if (!ends.stop_requested() && !MayPass(status)) return status;
      Log("term_ended", status.ok() ? "the lease was lost" : base::Message(status));
    }
    return OkStatus();
  }

 private:
  void Log(std::string_view event, const std::string& detail) const {
    if (options_.log) options_.log(event, "", detail);
  }

  Status StandBy(const std::stop_token& stop) {
    if (standby_) return OkStatus();
    ASSIGN_OR_RETURN(
        standby_,
        Patiently([&] { return Standby::Start(options_.listen, options_.credentials); }, stop));
    if (!options_.on_listening) return OkStatus();
    // The same port from now on, whatever it was asked for.
    options_.listen = rpc::WithPort(options_.listen, standby_->port());
    options_.advertise = rpc::WithPort(
        options_.advertise.empty() ? options_.listen : options_.advertise, standby_->port());
    std::exchange(options_.on_listening, nullptr)(standby_->port());
    return OkStatus();
  }

  CampaignOptions Campaign() const {
    return {.prefix = options_.etcd.prefix,
            .address = options_.advertise,
            .ttl = options_.etcd.lease_ttl,
            .on_leader =
                [this](const std::optional<std::string>& leader) {
                  standby_->SetLeader(leader);
                  Log("standing_by", leader ? *leader + " leads" : "nobody leads");
                },
            .on_trouble = [this](const Status& s) { Log("etcd_trouble", base::Message(s)); }};
  }

  Status Lead(const etcd::Client& client, Leadership& leadership, const std::stop_token& stop) {
    Log("leading", fmt::format("since revision {}", leadership.fence().create_revision));
    ASSIGN_OR_RETURN(const auto journal,
                     EtcdJournal::Open(client, leadership, {.prefix = options_.etcd.prefix}, stop));
    const auto figures = journal->figures();
    Log("journal_read", fmt::format("{} keys, {} bytes", figures.keys, figures.bytes));
    const auto leads = [&leadership] {
      return leadership.Holds() ? OkStatus() : NotLeader(std::nullopt);
    };
    return ServeTerm(
        options_, *journal, key_, leads, [this] { standby_.reset(); }, stop);
  }

  ServeOptions options_;
  const registry::SigningKey* const key_;
  std::unique_ptr<Standby> standby_;
};

}  // namespace

Status Serve(const ServeOptions& options, std::stop_token stop) {
  std::optional<registry::SigningKey> loaded;
  if (!options.signing_key_file.empty()) {
    ASSIGN_OR_RETURN(registry::SigningKey key, registry::LoadKey(options.signing_key_file));
    loaded.emplace(std::move(key));
  }
  const registry::SigningKey* const key = loaded ? &*loaded : nullptr;
  if (!options.etcd.endpoints.empty()) return Turns(options, key).Run(stop);
  ASSIGN_OR_RETURN(const auto store, store::Store::Open(options.data_directory));
  board::StoreJournal journal(*store);
  return ServeTerm(options, journal, key, nullptr, nullptr, stop);
}

}  // namespace tenon::coordinator
