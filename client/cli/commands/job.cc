// tenon job submit | list | show | watch | cancel | pause | resume | priority
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "client/cli/commands/services.h"
#include "client/cli/files.h"
#include "client/cli/universes.h"
#include "client/rpc/job_client.h"

namespace tenon::cli {
namespace {

using convert::Job;
using convert::JobState;

Json TimeJson(convert::UnixTime time) {
  const auto ms = time.time_since_epoch().count();
  return ms == 0 ? Json() : Json(ms);
}

Json EstimateJson(const convert::JobEstimate& e) {
  return Json::Object({{"graphs", e.graphs},
                       {"cpu_ms", e.cpu_ms},
                       {"memory_bytes", e.memory_bytes},
                       {"disk_bytes", e.disk_bytes},
                       {"extrapolated", e.extrapolated}});
}

void Print(const convert::JobEstimate& e, Console& console) {
  const auto line = [&](std::string_view what, const std::string& value) {
    console.Print(fmt::format("  {:<20}{}", what, value));
  };
  const auto bytes = [](double value) {
    return Bytes(static_cast<std::uint64_t>(std::min(value, 1e18)));
  };
  line("graphs, about", e.graphs < 1e15 ? Grouped(static_cast<std::uint64_t>(e.graphs))
                                        : fmt::format("{:.1e}", e.graphs));
  line("CPU time", Duration(e.cpu_ms / 1000));
  line("memory of a slot", bytes(e.memory_bytes));
  line("disk of all stores", bytes(e.disk_bytes));
  if (e.extrapolated) line("", "extrapolated from smaller sizes: right to a factor of two or so");
}

Json JobJson(const Job& job) {
  Json by_size = Json::Array(), set_aside = Json::Array();
  for (const std::uint64_t n : job.counts.graphs_by_size) by_size.Append(n);
  for (const convert::SetAside& s : job.set_aside) {
    Json workers = Json::Array();
    for (const std::string& worker : s.workers) workers.Append(worker);
    set_aside.Append(Json::Object(
        {{"shard", s.shard}, {"last_error", s.last_error}, {"workers", std::move(workers)}}));
  }
  return Json::Object({
      {"id", job.id},
      {"state", convert::NameOf(job.state)},
      {"paused", job.paused},
      {"pack_name", job.spec.pack_name},
      {"pack_version", job.spec.pack_version},
      {"max_operators", job.spec.max_operators},
      {"mode", job.spec.mode == convert::EnumerationMode::kCanonical ? "canonical" : "exhaustive"},
      {"priority", job.spec.priority},
      {"memory_limit_bytes", job.spec.memory_limit_bytes},
      {"time_limit_ms", job.spec.time_limit.count()},
      {"universe", job.spec.universe},
      {"submitted_at_ms", TimeJson(job.submitted_at)},
      {"started_at_ms", TimeJson(job.started_at)},
      {"ended_at_ms", TimeJson(job.ended_at)},
      {"revision", job.revision},
      {"shards_total", job.shards_total},
      {"shards_done", job.shards_done},
      {"shards_leased", job.shards_leased},
      {"set_aside", std::move(set_aside)},
      {"round", job.round},
      {"proofs_total", job.proofs_total},
      {"proofs_done", job.proofs_done},
      {"graphs", job.counts.graphs},
      {"graphs_by_size", std::move(by_size)},
      {"classes", job.counts.classes},
      {"equivalent_pairs", job.counts.equivalent_pairs},
      {"candidates", job.counts.candidates},
      {"proved", job.counts.proved},
      {"refuted", job.counts.refuted},
      {"unproved", job.counts.unproved},
      {"rules", job.counts.rules},
      {"underivable", job.counts.underivable},
      {"cpu_ms", job.cpu.count()},
      {"error", job.error},
      {"pack", job.pack_reference},
      {"pack_address", job.pack_address},
  });
}

Color ColorOf(JobState state) {
  if (state == JobState::kDone) return Color::kGreen;
  return state == JobState::kFailed ? Color::kRed : Color::kYellow;
}

void Print(const Job& job, Console& console) {
  const auto line = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) console.Print(fmt::format("  {:<20}{}", what, value));
  };
  console.Print(fmt::format("{} {}{}", console.Paint(Color::kBold, job.id),
                            console.Paint(ColorOf(job.state), convert::NameOf(job.state)),
                            job.paused ? " (paused)" : ""));
  line("pack", fmt::format("{}@{}", job.spec.pack_name, job.spec.pack_version));
  line("shards",
       fmt::format("{} of {}{}", job.shards_done, job.shards_total,
                   job.shards_leased > 0 ? fmt::format(", {} leased", job.shards_leased) : ""));
  if (job.round > 0) {
    line("proofs",
         fmt::format("{} of {} in round {}", job.proofs_done, job.proofs_total, job.round));
  }
  line("graphs", Grouped(job.counts.graphs));
  line("equivalent pairs", Grouped(job.counts.equivalent_pairs));
  line("proved", Grouped(job.counts.proved));
  line("refuted", Grouped(job.counts.refuted));
  line("unproved", Grouped(job.counts.unproved));
  line("rules", Grouped(job.counts.rules));
  line("CPU time", Duration(double(job.cpu.count()) / 1000));
  line("content", job.pack_address);
  line("error", job.error);
  for (const convert::SetAside& s : job.set_aside) {
    line("set aside", fmt::format("shard {}: {}", s.shard, s.last_error));
  }
}

void Show(const Job& job, Console& console) {
  switch (job.state) {
    case JobState::kSubmitted:
      return console.Progress("waiting", 0, 0);
    case JobState::kEnumerating:
      return console.Progress("enumerating", job.shards_done, job.shards_total);
    case JobState::kMatching:
      return console.Progress("matching", 0, 0);
    case JobState::kReducing:
      return console.Progress(fmt::format("proving, round {}", job.round), job.proofs_done,
                              job.proofs_total);
    case JobState::kPublishing:
      return console.Progress("publishing", 0, 0);
    case JobState::kDone:
    case JobState::kFailed:
    case JobState::kCancelled:
      return;
  }
}

// For those who see no bar, and for scripts: a line whenever the state changes.
void Tell(const Job& job, Console& console) {
  console.Tell(
      "job",
      {{"job", job.id},
       {"state", std::string(convert::NameOf(job.state))},
       {"shards_done", std::to_string(job.shards_done)},
       {"shards_total", std::to_string(job.shards_total)}},
      fmt::format("{}: {}{}", job.id, convert::NameOf(job.state), job.paused ? " (paused)" : ""));
}

// Follows a job to its end.
Outcome Follow(Context& context, const rpc::JobClient& client, const std::string& id,
               const std::string& json) {
  std::optional<std::pair<JobState, bool>> told;
  StatusOr<Job> watched = client.Watch(
      id,
      [&](const Job& job) {
        if (told != std::pair(job.state, job.paused)) {
          told.emplace(job.state, job.paused);
          Tell(job, context.console);
        }
        Show(job, context.console);
        return true;
      },
      context.interrupt.token());
  context.console.EndProgress();
  if (!watched.ok()) return Explained(watched.status());
  const Job& job = *watched;
  if (!convert::HasEnded(job.state)) {
    return absl::CancelledError(fmt::format("job {} goes on; this only stopped watching it", id));
  }
  Print(job, context.console);
  RETURN_IF_ERROR(Deliver(JobJson(job), json, context.console));
  return job.state == JobState::kDone ? ExitCode::kDone : ExitCode::kNo;
}

StatusOr<rpc::JobClient> Client(const ConnectOptions& server) {
  ASSIGN_OR_RETURN(auto connection, Connect(server));
  return rpc::JobClient(std::move(connection));
}

}  // namespace

Outcome SubmitJobCommand(Context& context, const JobSubmitOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  const EnumerationOptions& e = options.enumeration;
  ASSIGN_OR_RETURN(const graph::Universe universe, OpenUniverse(e.universe));
  ASSIGN_OR_RETURN(const UniverseSource source, FindUniverse(e.universe));
  convert::JobSpec spec;
  ASSIGN_OR_RETURN(spec.universe, UniverseText(source));
  spec.max_operators = e.max_operators.value_or(0);
  spec.mode = e.mode == "canonical" ? convert::EnumerationMode::kCanonical
                                    : convert::EnumerationMode::kExhaustive;
  spec.shards = e.shards;
  const std::string name = options.name.empty() ? DefaultPackName(universe) : options.name;
  const std::size_t at = name.find('@');
  spec.pack_name = name.substr(0, at);
  spec.pack_version = at == std::string::npos ? "0.1.0" : name.substr(at + 1);
  spec.priority = options.priority;
  spec.memory_limit_bytes = e.memory_limit_bytes;
  spec.time_limit = convert::Milliseconds(static_cast<std::int64_t>(e.time_limit_s * 1000));

  ASSIGN_OR_RETURN(const rpc::JobClient client, Client(options.server));
  if (options.dry_run) {
    const StatusOr<Job> judged = client.Judge(spec);
    if (!judged.ok()) return Explained(judged.status());
    if (!judged->estimate) return base::FailedPrecondition("the service makes no estimates");
    Print(*judged->estimate, context.console);
    RETURN_IF_ERROR(Deliver(EstimateJson(*judged->estimate), options.json, context.console));
    return ExitCode::kDone;
  }
  const StatusOr<Job> job = client.Submit(spec, options.request_id);
  if (!job.ok()) return Explained(job.status());
  context.console.Print(job->id);
  if (options.wait) return Follow(context, client, job->id, options.json);
  RETURN_IF_ERROR(Deliver(JobJson(*job), options.json, context.console));
  return ExitCode::kDone;
}

Outcome ShowJobCommand(Context& context, const JobOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const rpc::JobClient client, Client(options.server));
  const StatusOr<Job> job = client.Get(options.id);
  if (!job.ok()) return Explained(job.status());
  Print(*job, context.console);
  RETURN_IF_ERROR(Deliver(JobJson(*job), options.json, context.console));
  return ExitCode::kDone;
}

Outcome WatchJobCommand(Context& context, const JobOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const rpc::JobClient client, Client(options.server));
  return Follow(context, client, options.id, options.json);
}

Outcome ListJobsCommand(Context& context, const JobListOptions& options) {
  RETURN_IF_ERROR(CheckDeliverable(options.json));
  ASSIGN_OR_RETURN(const rpc::JobClient client, Client(options.server));
  convert::ListJobs request;
  request.page_size = options.limit;
  if (!options.all) {
    for (int s = int(JobState::kSubmitted); s < int(JobState::kDone); ++s) {
      request.states.push_back(JobState(s));
    }
  }
  const auto page = client.List(request);
  if (!page.ok()) return Explained(page.status());
  Json document = Json::Array();
  for (const Job& job : page->jobs) {
    context.console.Print(fmt::format("{:<28} {:<12} {}@{}  {} of {} shards{}", job.id,
                                      convert::NameOf(job.state), job.spec.pack_name,
                                      job.spec.pack_version, job.shards_done, job.shards_total,
                                      job.paused ? ", paused" : ""));
    document.Append(JobJson(job));
  }
  if (page->jobs.empty()) {
    context.console.Print(options.all ? "no jobs" : "no open jobs; --all shows the others");
  }
  RETURN_IF_ERROR(Deliver(document, options.json, context.console));
  return ExitCode::kDone;
}

Outcome ControlJobCommand(Context& context, const JobControlOptions& options) {
  using Action = convert::ControlJob::Action;
  ASSIGN_OR_RETURN(const rpc::JobClient client, Client(options.server));
  convert::ControlJob request{.id = options.id, .priority = options.priority};
  request.action = options.action == "cancel"   ? Action::kCancel
                   : options.action == "pause"  ? Action::kPause
                   : options.action == "resume" ? Action::kResume
                                                : Action::kSetPriority;
  const StatusOr<Job> job = client.Control(request);
  if (!job.ok()) return Explained(job.status());
  Print(*job, context.console);
  return ExitCode::kDone;
}

}  // namespace tenon::cli
