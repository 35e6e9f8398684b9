#include "proto/convert/jobs.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/graph/universe.h"
#include "core/pack/pack.h"
#include "proto/convert/universe.h"
#include "tenon/v1/jobs.pb.h"

namespace tenon::convert {
namespace {

constexpr std::uint32_t kPageMax = 1000;
constexpr std::uint32_t kPageDefault = 100;

class Found {
 public:
  void Add(std::string field, std::string description) {
    all_.push_back({std::move(field), std::move(description)});
  }
  void CheckId(const std::string& field, std::string_view id) {
    if (!IsId(id)) Add(field, fmt::format("'{}' is no id; give 1 to 64 of A-Za-z0-9._-", Cut(id)));
  }
  Status Take() const { return Violations(all_); }

  static std::string_view Cut(std::string_view text) { return text.substr(0, 80); }

 private:
  std::vector<Violation> all_;
};

UnixTime ToTime(std::int64_t ms) { return UnixTime(Milliseconds(ms)); }
std::int64_t FromTime(UnixTime t) { return t.time_since_epoch().count(); }

bool IsPriority(int p) { return -kPriorityMax <= p && p <= kPriorityMax; }
bool IsState(int state) { return state >= 1 && state <= 8; }

void CheckUniverse(const v1::JobSpec& m, JobSpec& out, Found& found) {
  if (m.universe().size() > kUniverseTextMax) {
    found.Add("spec.universe",
              fmt::format("{} bytes; at most {}", m.universe().size(), kUniverseTextMax));
    return;
  }
  const auto universe = ParseUniverse(m.universe(), "universe");
  if (!universe.ok()) {
    found.Add("spec.universe", base::Message(universe.status()));
    return;
  }
  out.universe = CanonicalText(*universe);
  out.max_operators = m.max_operators() == 0 ? universe->max_operators : m.max_operators();
  if (universe->outputs != graph::Outputs::kSingle) {
    found.Add("spec.universe", "outputs: only SINGLE can be enumerated; joins add the others");
  }
}

JobSpec CheckSpec(const v1::JobSpec& m, Found& found) {
  JobSpec out;
  CheckUniverse(m, out, found);
  if (m.max_operators() < 0 || m.max_operators() > graph::kMaxOperatorsMax) {
    found.Add("spec.max_operators", fmt::format("{}; 1 to {}, or 0 for what the universe says",
                                                m.max_operators(), graph::kMaxOperatorsMax));
  }
  if (m.mode() < 0 || m.mode() > 2) {
    found.Add("spec.mode", fmt::format("{} is unknown; EXHAUSTIVE or CANONICAL", int(m.mode())));
  } else {
    out.mode = m.mode() == v1::ENUMERATION_MODE_CANONICAL ? EnumerationMode::kCanonical
                                                          : EnumerationMode::kExhaustive;
  }
  out.shards = m.shards();
  if (m.shards() > kShardsMax) {
    found.Add("spec.shards", fmt::format("{}; at most {}, or 0", m.shards(), kShardsMax));
  }
  out.pack_name = m.pack_name();
  if (!pack::IsPackName(out.pack_name)) {
    found.Add("spec.pack_name", fmt::format("'{}'; give 1 to 64 of a-z 0-9 _ -, a letter first",
                                            Found::Cut(out.pack_name)));
  }
  out.pack_version = m.pack_version();
  if (const auto v = pack::ParseVersion(out.pack_version); !v.ok()) {
    found.Add("spec.pack_version", base::Message(v.status()));
  }
  out.priority = m.priority();
  if (!IsPriority(out.priority)) {
    found.Add("spec.priority", fmt::format("{}; -100 to 100", m.priority()));
  }
  out.memory_limit_bytes = m.memory_limit_bytes();
  if (m.time_limit_ms() > kTimeLimitMaxMs) found.Add("spec.time_limit_ms", "more than a year");
  out.time_limit = Milliseconds(std::min(m.time_limit_ms(), kTimeLimitMaxMs));
  return out;
}

// As it is: a later version may allow more.
JobSpec Unchecked(const v1::JobSpec& m) {
  JobSpec out;
  out.universe = m.universe();
  out.max_operators = m.max_operators();
  out.mode = m.mode() == v1::ENUMERATION_MODE_CANONICAL ? EnumerationMode::kCanonical
                                                        : EnumerationMode::kExhaustive;
  out.shards = m.shards();
  out.pack_name = m.pack_name();
  out.pack_version = m.pack_version();
  out.priority = m.priority();
  out.memory_limit_bytes = m.memory_limit_bytes();
  out.time_limit = Milliseconds(m.time_limit_ms());
  return out;
}

}  // namespace

std::string_view NameOf(JobState state) {
  switch (state) {
    case JobState::kSubmitted:
      return "submitted";
    case JobState::kEnumerating:
      return "enumerating";
    case JobState::kMatching:
      return "matching";
    case JobState::kReducing:
      return "reducing";
    case JobState::kPublishing:
      return "publishing";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

StatusOr<SubmitJob> FromMessage(const v1::SubmitJobRequest& message) {
  Found found;
  SubmitJob out;
  out.request_id = message.request_id();
  found.CheckId("request_id", out.request_id);
  out.spec = CheckSpec(message.spec(), found);
  out.dry_run = message.dry_run();
  RETURN_IF_ERROR(found.Take());
  return out;
}

StatusOr<ListJobs> FromMessage(const v1::ListJobsRequest& message) {
  Found found;
  ListJobs out;
  out.page_size = message.page_size() == 0 ? kPageDefault : message.page_size();
  if (out.page_size > kPageMax) {
    found.Add("page_size", fmt::format("{}; at most {}", out.page_size, kPageMax));
  }
  out.page_token = message.page_token();
  if (!out.page_token.empty()) found.CheckId("page_token", out.page_token);
  for (int k = 0; k < message.states_size(); ++k) {
    if (!IsState(message.states(k))) {
      found.Add(fmt::format("states[{}]", k), fmt::format("{} is unknown", int(message.states(k))));
    } else {
      out.states.push_back(static_cast<JobState>(message.states(k)));
    }
  }
  RETURN_IF_ERROR(found.Take());
  return out;
}

StatusOr<ControlJob> FromMessage(const v1::ControlJobRequest& message) {
  Found found;
  ControlJob out;
  out.id = message.id();
  found.CheckId("id", out.id);
  if (message.action() < 1 || message.action() > 4) {
    found.Add("action", fmt::format("{} is unknown; CANCEL, PAUSE, RESUME or SET_PRIORITY",
                                    int(message.action())));
  } else {
    out.action = static_cast<ControlJob::Action>(message.action());
  }
  out.priority = message.priority();
  if (!IsPriority(out.priority)) {
    found.Add("priority", fmt::format("{}; -100 to 100", out.priority));
  }
  RETURN_IF_ERROR(found.Take());
  return out;
}

GenerationCounts FromMessage(const v1::GenerationCounts& m) {
  GenerationCounts out;
  out.graphs_by_size.assign(m.graphs_by_size().begin(), m.graphs_by_size().end());
  out.graphs = m.graphs();
  out.classes = m.classes();
  out.equivalent_pairs = m.equivalent_pairs();
  out.candidates = m.candidates();
  out.proved = m.proved();
  out.refuted = m.refuted();
  out.unproved = m.unproved();
  out.rules = m.rules();
  out.underivable = m.underivable();
  return out;
}

StatusOr<Job> FromMessage(const v1::Job& m) {
  if (!IsState(m.state())) {
    return base::Internal(fmt::format(
        "job '{}': state {} is unknown; the server is of a later version", m.id(), int(m.state())));
  }
  Job out;
  out.id = m.id();
  out.spec = Unchecked(m.spec());
  out.state = static_cast<JobState>(m.state());
  out.paused = m.paused();
  out.submitted_at = ToTime(m.submitted_at_ms());
  out.started_at = ToTime(m.started_at_ms());
  out.ended_at = ToTime(m.ended_at_ms());
  out.revision = m.revision();
  out.shards_total = m.shards_total();
  out.shards_done = m.shards_done();
  out.shards_leased = m.shards_leased();
  for (const v1::SetAside& s : m.set_aside()) {
    out.set_aside.push_back({s.shard(), s.last_error(), {s.workers().begin(), s.workers().end()}});
  }
  out.round = m.round();
  out.proofs_total = m.proofs_total();
  out.proofs_done = m.proofs_done();
  out.counts = FromMessage(m.counts());
  out.error = m.error();
  out.pack_reference = m.pack_reference();
  out.pack_address = m.pack_address();
  out.cpu = Milliseconds(m.cpu_ms());
  if (m.has_estimate()) {
    const v1::JobEstimate& e = m.estimate();
    out.estimate = {e.graphs(), e.cpu_ms(), e.memory_bytes(), e.disk_bytes(), e.extrapolated()};
  }
  return out;
}

void ToMessage(const JobSpec& spec, v1::JobSpec& m) {
  m.set_universe(spec.universe);
  m.set_max_operators(spec.max_operators);
  m.set_mode(static_cast<v1::EnumerationMode>(spec.mode));
  m.set_shards(spec.shards);
  m.set_pack_name(spec.pack_name);
  m.set_pack_version(spec.pack_version);
  m.set_priority(spec.priority);
  m.set_memory_limit_bytes(spec.memory_limit_bytes);
  m.set_time_limit_ms(static_cast<std::uint64_t>(spec.time_limit.count()));
}

void ToMessage(const GenerationCounts& counts, v1::GenerationCounts& m) {
  m.mutable_graphs_by_size()->Assign(counts.graphs_by_size.begin(), counts.graphs_by_size.end());
  m.set_graphs(counts.graphs);
  m.set_classes(counts.classes);
  m.set_equivalent_pairs(counts.equivalent_pairs);
  m.set_candidates(counts.candidates);
  m.set_proved(counts.proved);
  m.set_refuted(counts.refuted);
  m.set_unproved(counts.unproved);
  m.set_rules(counts.rules);
  m.set_underivable(counts.underivable);
}

void ToMessage(const Job& job, v1::Job& m) {
  m.set_id(job.id);
  ToMessage(job.spec, *m.mutable_spec());
  m.set_state(static_cast<v1::JobState>(job.state));
  m.set_paused(job.paused);
  m.set_submitted_at_ms(FromTime(job.submitted_at));
  m.set_started_at_ms(FromTime(job.started_at));
  m.set_ended_at_ms(FromTime(job.ended_at));
  m.set_revision(job.revision);
  m.set_shards_total(job.shards_total);
  m.set_shards_done(job.shards_done);
  m.set_shards_leased(job.shards_leased);
  for (const SetAside& s : job.set_aside) {
    v1::SetAside& to = *m.add_set_aside();
    to.set_shard(s.shard);
    to.set_last_error(s.last_error);
    for (const std::string& worker : s.workers) to.add_workers(worker);
  }
  m.set_round(job.round);
  m.set_proofs_total(job.proofs_total);
  m.set_proofs_done(job.proofs_done);
  ToMessage(job.counts, *m.mutable_counts());
  m.set_error(job.error);
  m.set_pack_reference(job.pack_reference);
  m.set_pack_address(job.pack_address);
  m.set_cpu_ms(static_cast<std::uint64_t>(job.cpu.count()));
  if (job.estimate) {
    v1::JobEstimate& to = *m.mutable_estimate();
    to.set_graphs(job.estimate->graphs);
    to.set_cpu_ms(job.estimate->cpu_ms);
    to.set_memory_bytes(job.estimate->memory_bytes);
    to.set_disk_bytes(job.estimate->disk_bytes);
    to.set_extrapolated(job.estimate->extrapolated);
  }
}

}  // namespace tenon::convert
