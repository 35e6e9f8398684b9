// From collected classes to a published pack, in a thread of its own.
//
// Nothing here is saved but verdicts (by the board) and the pack (by the sink): whoever starts
// again comes to the same rounds and the same bytes. So the file holds nothing that depends on when
// or how often it was tried: its time is that of the submission.
#include <fmt/core.h>

#include "client/registry/pack_file.h"
#include "coordinator/publish/content.h"
#include "coordinator/run/coordinator.h"
#include "core/base/kill_point.h"
#include "core/rules/canonical.h"
#include "proto/convert/universe.h"

namespace tenon::coordinator {
namespace {

reduce::Verdict Coarse(convert::VerdictKind kind) {
  switch (kind) {
    case convert::VerdictKind::kProved:
      return reduce::Verdict::kProved;
    case convert::VerdictKind::kRefuted:
      return reduce::Verdict::kRefuted;
    case convert::VerdictKind::kUnproved:
    case convert::VerdictKind::kUnknown:
    case convert::VerdictKind::kIllFormed:
    case convert::VerdictKind::kVacuous:
      return reduce::Verdict::kUnproved;
  }
  return reduce::Verdict::kUnproved;
}

// The world may be better later.
bool MayPass(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status);
}

}  // namespace

bool Coordinator::IsWanted(std::uint64_t job, const std::stop_token& stop) const {
  if (stop.stop_requested()) return false;
  const base::MutexLock lock(mutex_);
  return board_->IsWanted(job);
}

void Coordinator::ReduceJobs(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::optional<board::Collected> job;
    std::uint64_t revision = 0;
    {
      const base::MutexLock lock(mutex_);
      job = board_->Claim();
      revision = board_->revision();
    }
    if (!job) {
      AwaitChange(revision);
      continue;
    }
    Log("reducing", job->id, "");
    const Status status = ReduceJob(*job, stop);
    if (stop.stop_requested()) return;
    bool again = false;
    if (!status.ok()) {
      Log("reducing_failed", job->id, base::Message(status));
      const base::MutexLock lock(mutex_);
      // Should the failure itself not be written down, the job is tried again, too.
      again =
          board_->IsWanted(job->job) &&
          (MayPass(status) || !board_->Fail(job->job, base::Message(status), world_.now()).ok());
      changed_.SignalAll();
    }
    if (!again) {
      const base::MutexLock lock(mutex_);
      board_->Reduced(job->job);
      continue;
    }
    Pause();
    const base::MutexLock lock(mutex_);
    board_->GiveBack(job->job);
    changed_.SignalAll();
  }
}

StatusOr<std::vector<convert::VerdictKind>> Coordinator::Ask(std::uint64_t job,
                                                             std::vector<std::string> rules,
                                                             std::stop_token stop) {
  {
    const base::MutexLock lock(mutex_);
    RETURN_IF_ERROR(board_->BeginRound(job, std::move(rules)));
    changed_.SignalAll();
  }
  while (true) {
    std::uint64_t revision = 0;
    {
      const base::MutexLock lock(mutex_);
      if (!board_->IsWanted(job) || stop.stop_requested()) break;
      if (auto result = board_->RoundResult(job)) return *std::move(result);
      revision = board_->revision();
    }
    AwaitChange(revision);
  }
  return absl::CancelledError("the job was given up");
}

Status Coordinator::ReduceJob(const board::Collected& job, std::stop_token stop) {
  ASSIGN_OR_RETURN(const graph::TermClasses classes, world_.read_classes(job, stop));
  const publish::Found found{
      .classes = {classes.table, classes.at, classes.members},
      .universe = job.spec.universe,
      .mode = job.spec.mode == convert::EnumerationMode::kCanonical ? "canonical" : "exhaustive",
      .max_operators = static_cast<std::uint64_t>(job.spec.max_operators),
      .graphs_by_size = job.result.graphs_by_size,
      .class_count = job.result.classes,
      .equivalent_pairs = job.result.equivalent_pairs};

  // Rules without canonical bytes cannot be sent or published: unproved, as in one process.
  const auto prover =
      [&](std::span<const rules::Rule* const> batch) -> StatusOr<std::vector<reduce::Verdict>> {
    std::vector<reduce::Verdict> out(batch.size(), reduce::Verdict::kUnproved);
    std::vector<std::string> bytes;
    std::vector<std::size_t> at;
    for (std::size_t k = 0; k < batch.size(); ++k) {
      auto one = rules::CanonicalBytes(*batch[k]);
      if (!one.ok()) continue;
      bytes.push_back(*std::move(one));
      at.push_back(k);
    }
    if (bytes.empty()) return out;
    ASSIGN_OR_RETURN(const auto verdicts, Ask(job.job, bytes, stop));
    TENON_KILL_POINT("coordinator.round");
    for (std::size_t k = 0; k < at.size(); ++k) {
      out[at[k]] = Coarse(verdicts[k]);
      if (out[at[k]] != reduce::Verdict::kProved) continue;
      // A proof without a certificate (an old verifier's) is none.
      const base::MutexLock lock(mutex_);
      ASSIGN_OR_RETURN(const std::string certificate, board_->Certificate(job.job, bytes[k]));
      if (certificate.empty()) out[at[k]] = reduce::Verdict::kUnproved;
    }
    return out;
  };
  const auto progress = [&](const publish::Progress&) { return IsWanted(job.job, stop); };
  ASSIGN_OR_RETURN(publish::Made made, publish::MakeContent(found, prover, progress));
  for (pack::PackedRule& packed : made.content.rules) {
    ASSIGN_OR_RETURN(const std::string rule, rules::CanonicalBytes(packed.rule));
    const base::MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(packed.certificate, board_->Certificate(job.job, rule));
  }
  RETURN_IF_ERROR(pack::RequireCertificates(made.content));

  {
    const base::MutexLock lock(mutex_);
    board_->BeginPublishing(job.job);
    changed_.SignalAll();
  }
  registry::PackFile file;
  file.name = job.spec.pack_name;
  ASSIGN_OR_RETURN(file.version, pack::ParseVersion(job.spec.pack_version));
  file.content = std::move(made.content);
  file.provenance.job = job.id;
  file.provenance.code_version = world_.code_version;
  file.provenance.time = job.submitted_at.time_since_epoch().count() / 1000;
  ASSIGN_OR_RETURN(const std::string bytes, registry::EncodePackFile(file, world_.key));
  ASSIGN_OR_RETURN(const std::string address, registry::AddressOf(file.content));
  if (!IsWanted(job.job, stop)) return absl::CancelledError("the job was given up");
  TENON_KILL_POINT("coordinator.publish");
  RETURN_IF_ERROR(world_.sink.Publish(file.name, job.spec.pack_version, bytes));
  TENON_KILL_POINT("coordinator.published");

  const pack::Counts& c = file.content.counts;
  board::Board::Outcome outcome;
  outcome.counts = {c.graphs_by_size,   job.result.graphs, c.classes,
                    c.equivalent_pairs, c.candidates,      c.proved,
                    c.refuted,          c.unproved,        pack::FamilyCount(file.content),
                    c.underivable};
  outcome.pack_reference = file.reference();
  outcome.pack_address = address;
  const base::MutexLock lock(mutex_);
  const Status finished = board_->Finish(job.job, outcome, world_.now());
  changed_.SignalAll();
  return finished;
}

void Coordinator::DropTables(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::vector<board::Table> tables;
    {
      const base::MutexLock lock(mutex_);
      tables = board_->TablesToDrop();
    }
    for (const board::Table& table : tables) {
      // What cannot be dropped now is dropped later: stores come and go.
      if (stop.stop_requested() || !world_.drop_table(table, stop).ok()) continue;
      const base::MutexLock lock(mutex_);
      (void)board_->Dropped(table.job);
    }
    Pause();
  }
}

}  // namespace tenon::coordinator
