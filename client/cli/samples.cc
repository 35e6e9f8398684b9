#include "client/cli/samples.h"

#include <map>
#include <string>

namespace tenon::cli {
namespace {

using observe::Sample;
using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr std::array<std::string_view, 5> kKindLabels{"", "shard", "collect", "proofs", "join"};

class Samples {
 public:
  template <class T>
  void Gauge(const char* name, const char* help, T value, Labels labels = {}) {
    all_.push_back({name, help, false, std::move(labels), static_cast<double>(value)});
  }
  template <class T>
  void Counter(const char* name, const char* help, T value, Labels labels = {}) {
    all_.push_back({name, help, true, std::move(labels), static_cast<double>(value)});
  }
  std::vector<Sample> Take() { return std::move(all_); }

 private:
  std::vector<Sample> all_;
};

Labels Kind(std::size_t k) { return {{"kind", std::string(kKindLabels[k])}}; }

void AddTotals(const board::Totals& t, Samples& out) {
  out.Counter("tenon_graphs_total", "Graphs that shards have enumerated", t.graphs);
  out.Counter("tenon_records_total", "Records that shards have written to stores", t.records);
  out.Counter("tenon_record_bytes_total", "Bytes of these records", t.record_bytes);
  out.Counter("tenon_shards_total", "Shards that are done", t.shards);
  out.Counter("tenon_shards_set_aside_total", "Shards that were given up", t.shards_set_aside);
  out.Counter("tenon_rules_total", "Rules that jobs have published", t.rules);
  out.Counter("tenon_job_cpu_seconds_total", "CPU time of nodes for jobs",
              double(t.cpu.count()) / 1000);
  for (std::size_t k = 1; k < t.verdicts.size(); ++k) {
    out.Counter("tenon_job_verdicts_total", "Verdicts that jobs were given by verifiers",
                t.verdicts[k],
                {{"verdict", std::string(LabelOf(static_cast<convert::VerdictKind>(k)))}});
  }
  const char* const lookups = "Rules that jobs asked for, by whether a verdict was known";
  out.Counter("tenon_verdict_lookups_total", lookups, t.verdicts_known, {{"result", "hit"}});
  out.Counter("tenon_verdict_lookups_total", lookups, t.verdicts_asked, {{"result", "miss"}});
  for (std::size_t k = 1; k < t.leases_given.size(); ++k) {
    out.Counter("tenon_leases_given_total", "Leases that nodes were given", t.leases_given[k],
                Kind(k));
    out.Counter("tenon_leases_expired_total", "Leases of nodes that went silent",
                t.leases_expired[k], Kind(k));
  }
  for (const auto state :
       {convert::JobState::kDone, convert::JobState::kFailed, convert::JobState::kCancelled}) {
    out.Counter("tenon_jobs_ended_total", "Jobs that have ended",
                t.jobs_ended[static_cast<std::size_t>(state)],
                {{"state", std::string(convert::NameOf(state))}});
  }
}

}  // namespace

std::vector<Sample> SamplesOf(const coordinator::Coordinator::Figures& figures) {
  Samples out;
  const board::Figures& board = figures.board;
  for (std::size_t k = 1; k < board.open.size(); ++k) {
    out.Gauge("tenon_open_tasks", "Tasks that nodes may take or have taken", board.open[k],
              Kind(k));
    out.Gauge("tenon_leases", "Leases of tasks that nodes work on", board.leases[k], Kind(k));
  }
  out.Gauge("tenon_waiting_calls", "Calls that wait for something to do or to tell",
            figures.waiters);
  out.Gauge("tenon_waiting_submissions", "Submissions that wait for their estimate",
            figures.submissions);
  std::map<std::string, std::uint64_t> nodes{{"store", 0}, {"verifier", 0}, {"worker", 0}};
  for (const board::Node& node : figures.nodes) nodes[node.role] += node.silent ? 0 : 1;
  for (const auto& [role, count] : nodes) {
    out.Gauge("tenon_nodes", "Nodes that send heartbeats", count, {{"role", role}});
  }
  for (std::size_t s = 1; s < board.jobs.size(); ++s) {
    out.Gauge("tenon_jobs", "Jobs by state", board.jobs[s],
              {{"state", std::string(convert::NameOf(static_cast<convert::JobState>(s)))}});
  }
  out.Gauge("tenon_shards_left", "Shards of open jobs to be done", board.shards_left);
  out.Gauge("tenon_proofs_left", "Proofs of open jobs to be done", board.proofs_left);
  out.Gauge("tenon_coordinator_epoch", "How often the coordinator was started on this data",
            figures.epoch);
  AddTotals(board.totals, out);
  return out.Take();
}

std::vector<Sample> SamplesOf(const store::ServerFigures& f) {
  Samples out;
  out.Counter("tenon_store_batches_total", "Batches that were written and synced", f.batches);
  out.Counter("tenon_store_batches_refused_total",
              "Batches that were not, mostly for want of space", f.refused_batches);
  out.Counter("tenon_store_runs_total", "Runs that were acknowledged", f.runs);
  out.Counter("tenon_store_run_bytes_total", "Bytes of these runs", f.run_bytes);
  out.Gauge("tenon_store_queued_bytes", "Runs that wait to be written", f.queued_bytes);
  out.Gauge("tenon_store_disk_free_bytes", "What is free on the disk", f.disk_free_bytes);
  out.Gauge("tenon_store_accepts_writes", "1, or 0 while the disk is nearly full",
            f.accepts_writes ? 1 : 0);
  return out.Take();
}

std::vector<Sample> SamplesOf(const optimizer::NodeFigures& f) {
  Samples out;
  out.Gauge("tenon_optimize_running", "Models that are being optimized", f.running);
  out.Gauge("tenon_optimize_waiting", "Calls that send their model or wait for a turn", f.waiting);
  out.Gauge("tenon_optimize_slots", "Models that may be optimized at a time", f.slots);
  const char* const bytes = "Bytes of models that were received and sent";
  out.Counter("tenon_optimize_bytes_total", bytes, f.bytes_in, {{"direction", "in"}});
  out.Counter("tenon_optimize_bytes_total", bytes, f.bytes_out, {{"direction", "out"}});
  out.Counter("tenon_optimize_children_died_total",
              "Processes that died while they worked on a model", f.children_died);
  const char* const lookups = "Times that a result was looked for among those that are kept";
  out.Counter("tenon_optimize_cache_lookups_total", lookups, f.cache.hits, {{"result", "hit"}});
  out.Counter("tenon_optimize_cache_lookups_total", lookups, f.cache.misses, {{"result", "miss"}});
  const char* const failures = "Kept results that were damaged, and results that could not be kept";
  out.Counter("tenon_optimize_cache_failures_total", failures, f.cache.damaged,
              {{"reason", "damaged"}});
  out.Counter("tenon_optimize_cache_failures_total", failures, f.cache.unwritten,
              {{"reason", "unwritten"}});
  out.Gauge("tenon_optimize_cache_bytes", "Bytes of the results that are kept", f.cache.bytes);
  out.Gauge("tenon_packs_served", "Packs in use", f.packs.served);
  out.Gauge("tenon_packs_stale", "Packs in use that could not be refreshed", f.packs.stale);
  out.Gauge("tenon_packs_missing", "Packs of which no good one has come yet", f.packs.missing);
  return out.Take();
}

std::string_view LabelOf(convert::VerdictKind kind) {
  return kVerdictLabels[static_cast<std::size_t>(kind) - 1];
}

std::string_view LabelOf(rpc::NodeEvent::Kind kind) {
  return kOutcomeLabels[static_cast<std::size_t>(kind)];
}

std::string_view LabelOf(optimizer::CallOutcome outcome) {
  return kCallLabels[static_cast<std::size_t>(outcome)];
}

}  // namespace tenon::cli
