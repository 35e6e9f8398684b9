#include "client/cli/generate.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include <fmt/core.h>

#include "coordinator/publish/content.h"
#include "core/base/mutex.h"
#include "core/graph/classes.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "proto/convert/universe.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::uint64_t PeakRssBytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

reduce::Verdict Coarse(verifier::VerdictKind kind) {
  switch (kind) {
    case verifier::VerdictKind::kProved:
      return reduce::Verdict::kProved;
    case verifier::VerdictKind::kRefuted:
      return reduce::Verdict::kRefuted;
    case verifier::VerdictKind::kUnproved:
    case verifier::VerdictKind::kUnknown:
    case verifier::VerdictKind::kIllFormed:
    case verifier::VerdictKind::kVacuous:
      return reduce::Verdict::kUnproved;
  }
  return reduce::Verdict::kUnproved;
}

verifier::Verdict NoCanonicalForm(const Status& why) {
  verifier::Verdict out;
  out.kind = verifier::VerdictKind::kUnknown;
  out.reason = base::Message(why);
  return out;
}

// Asks the verifier, in several threads; the answers do not depend on how many.
class ProofPool {
 public:
  ProofPool(const GenerateOptions& options, GenerateReport& report)
      : options_(options), report_(report) {
    threads_ =
        options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  }

  // The rules are proved in canonical form, which is what travels to a verifier: so the verdicts
  // are the same here and there.
  StatusOr<std::vector<reduce::Verdict>> Prove(std::span<const rules::Rule* const> batch) {
    std::vector<StatusOr<verifier::Verdict>> answers(batch.size(), base::Internal("not asked"));
    std::vector<std::string> certificates(batch.size());
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    base::Mutex progress_mutex;
    std::size_t done = 0;
    double seconds = 0;
    const auto work = [&] {
      const Clock::time_point start = Clock::now();
      for (std::size_t k = next++; k < batch.size() && !stop; k = next++) {
        const auto canonical = rules::Canonical(*batch[k]);
        answers[k] = canonical.ok() ? verifier::Prove(*canonical, options_.budget)
                                    : NoCanonicalForm(canonical.status());
        if (answers[k].ok() && canonical.ok()) {
          certificates[k] = certify::CertifyOrDemote(*canonical, *answers[k]);
        }
        const base::MutexLock lock(progress_mutex);
        ++done;
        if (options_.progress && !options_.progress({"proofs", done, batch.size()})) stop = true;
      }
      const base::MutexLock lock(progress_mutex);
      seconds += Since(start);
    };
    {
      std::vector<std::jthread> helpers;
      const std::size_t extra = std::min<std::size_t>(threads_, batch.size());
      for (std::size_t t = 1; t < extra; ++t) helpers.emplace_back(work);
      work();
    }
    report_.proof_seconds += seconds;
    if (stop) return absl::CancelledError("generation was stopped");
    std::vector<reduce::Verdict> out;
    for (std::size_t k = 0; k < batch.size(); ++k) {
      if (!answers[k].ok()) return answers[k].status();
      const verifier::Verdict& verdict = *answers[k];
      out.push_back(Coarse(verdict.kind));
      if (verdict.kind == verifier::VerdictKind::kProved) {
        ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(*batch[k]));
        certificates_.emplace(std::move(bytes), std::move(certificates[k]));
        continue;
      }
      std::string reason = verdict.reason;
      if (verdict.counterexample) reason = verifier::Print(*verdict.counterexample);
      const auto canonical = rules::Canonical(*batch[k]);
      report_.rejected.push_back({rules::PrintRule(canonical.ok() ? *canonical : *batch[k]),
                                  verifier::NameOf(verdict.kind), std::move(reason)});
    }
    return out;
  }

  // Gives the rules their certificates.
  Status Certify(pack::Content& content) const {
    for (pack::PackedRule& packed : content.rules) {
      ASSIGN_OR_RETURN(const std::string bytes, rules::CanonicalBytes(packed.rule));
      const auto known = certificates_.find(bytes);
      if (known != certificates_.end()) packed.certificate = known->second;
    }
    return pack::RequireCertificates(content);
  }

 private:
  const GenerateOptions& options_;
  GenerateReport& report_;
  unsigned threads_ = 1;
  std::map<std::string, std::string> certificates_;  // By canonical bytes.
};

}  // namespace

StatusOr<Generated> Generate(const graph::Universe& universe, const GenerateOptions& options) {
  const Clock::time_point start = Clock::now();
  Generated out;
  GenerateReport& report = out.report;

  worker::EnumerateOptions enumerate;
  enumerate.max_operators = options.max_operators;
  enumerate.mode = options.mode;
  enumerate.shards = options.shards;
  enumerate.memory_limit_bytes = options.memory_limit_bytes;
  enumerate.time_limit_seconds = options.time_limit_seconds;
  enumerate.scratch_directory = options.scratch_directory;
  if (options.progress) {
    enumerate.progress = [&](const worker::Progress& p) {
      return options.progress({p.phase, p.done, p.total});
    };
  }
  ASSIGN_OR_RETURN(const worker::Enumeration found, worker::Enumerate(universe, enumerate));
  report.graphs = found.graphs;
  report.graphs_by_size = found.graphs_by_size;
  report.classes = found.classes;
  report.equivalent_pairs = found.equivalent_pairs;
  report.mode = options.mode == worker::Mode::kExhaustive ? "exhaustive" : "canonical";
  report.enumerate_seconds = found.seconds;
  report.graphs_per_second = found.seconds > 0 ? double(found.graphs) / found.seconds : 0;

  const Clock::time_point reduce_start = Clock::now();
  ProofPool pool(options, report);
  // The part of the table that travels on a cluster: the same input, the same pack.
  const graph::TermClasses fragment =
      graph::Fragment(universe, found.table, found.class_at, found.class_members);
  const publish::Found input{.classes = {fragment.table, fragment.at, fragment.members},
                             .universe = convert::CanonicalText(universe),
                             .mode = report.mode,
                             .max_operators = static_cast<std::uint64_t>(found.max_operators),
                             .graphs_by_size = report.graphs_by_size,
                             .class_count = report.classes,
                             .equivalent_pairs = report.equivalent_pairs};
  std::function<bool(const publish::Progress&)> progress;
  if (options.progress) {
    progress = [&](const publish::Progress& p) {
      return options.progress({p.phase, p.done, p.total});
    };
  }
  const auto prover = [&](std::span<const rules::Rule* const> batch) { return pool.Prove(batch); };
  ASSIGN_OR_RETURN(publish::Made made, publish::MakeContent(input, prover, progress));
  RETURN_IF_ERROR(pool.Certify(made.content));
  report.candidates = made.content.counts.candidates;
  report.proved = made.content.counts.proved;
  report.refuted = made.content.counts.refuted;
  report.unproved = made.content.counts.unproved;
  report.pairs_checked = made.content.counts.pairs_checked;
  report.underivable = made.content.counts.underivable;
  report.rounds = made.rounds;
  report.rules = pack::FamilyCount(made.content);
  report.forms = made.content.rules.size();
  report.multi_output_rules = made.multi_output_rules;
  for (const auto& [a, b] : made.examples) {
    report.underivable_examples.push_back(fragment.table.Print(a) + " = " +
                                          fragment.table.Print(b));
  }
  report.reduce_seconds = Since(reduce_start);
  out.content = std::move(made.content);
  report.peak_rss_bytes = PeakRssBytes();
  report.seconds = Since(start);
  return out;
}

}  // namespace tenon::cli
