#include "client/cli/generate.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include <fmt/core.h>

#include "absl/synchronization/mutex.h"
#include "coordinator/reduce/reduce.h"
#include "core/rules/canonical.h"
#include "core/rules/float_class.h"
#include "core/rules/join.h"
#include "core/rules/lift.h"
#include "core/rules/rank.h"
#include "core/rules/text.h"
#include "proto/convert/universe.h"
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

// "concat_matmul__matmul_concat": the operators of both sides, from the roots down, each once.
std::string NameOf(const rules::Rule& rule) {
  const auto side = [&](const std::vector<graph::NodeId>& roots) {
    std::string out;
    std::set<std::string> seen;
    const std::vector<graph::NodeId> ids = rule.graph.Reachable(roots);
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      const graph::Node& n = rule.graph.node(*it);
      if (n.is_input()) continue;
      std::string word(ops::NameOf(*n.op));
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (!seen.insert(word).second) continue;
      out += (out.empty() ? "" : "_") + word;
    }
    return out.empty() ? std::string("input") : out;
  };
  const std::string name = side(rule.source) + "__" + side(rule.target);
  return rule.source.size() == 1 ? name : fmt::format("join{}_{}", rule.source.size(), name);
}

// Asks the verifier, in several threads; the answers do not depend on how many.
class ProofPool {
 public:
  ProofPool(const GenerateOptions& options, GenerateReport& report)
      : options_(options), report_(report) {
    threads_ =
        options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  }

  StatusOr<std::vector<verifier::Verdict>> Prove(std::span<const rules::Rule* const> batch) {
    std::vector<StatusOr<verifier::Verdict>> answers(batch.size(), base::Internal("not asked"));
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    absl::Mutex progress_mutex;
    std::size_t done = 0;
    double seconds = 0;
    const auto work = [&] {
      const Clock::time_point start = Clock::now();
      for (std::size_t k = next++; k < batch.size() && !stop; k = next++) {
        answers[k] = verifier::Prove(*batch[k], options_.budget);
        const absl::MutexLock lock(&progress_mutex);
        ++done;
        if (options_.progress && !options_.progress({"proofs", done, batch.size()})) stop = true;
      }
      const absl::MutexLock lock(&progress_mutex);
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
    std::vector<verifier::Verdict> out;
    for (std::size_t k = 0; k < batch.size(); ++k) {
      if (!answers[k].ok()) return answers[k].status();
      out.push_back(*std::move(answers[k]));
      if (out.back().kind == verifier::VerdictKind::kProved) continue;
      std::string reason = out.back().reason;
      if (out.back().counterexample) reason = verifier::Print(*out.back().counterexample);
      report_.rejected.push_back(
          {rules::PrintRule(*batch[k]), verifier::NameOf(out.back().kind), std::move(reason)});
    }
    return out;
  }

 private:
  const GenerateOptions& options_;
  GenerateReport& report_;
  unsigned threads_ = 1;
};

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

StatusOr<reduce::Reduction> ReduceClasses(const worker::Enumeration& found,
                                          const GenerateOptions& options, ProofPool& pool) {
  const reduce::Classes classes{found.table, found.class_at, found.class_members};
  reduce::ReduceOptions reduce_options;
  if (options.progress) {
    reduce_options.progress = [&](const reduce::Progress& p) {
      return options.progress({p.phase, p.done, p.total});
    };
  }
  return reduce::Reduce(
      classes,
      [](const graph::Graph& g, graph::NodeId a, graph::NodeId b) { return rules::Lift(g, a, b); },
      [&](std::span<const rules::Rule* const> batch) -> StatusOr<std::vector<reduce::Verdict>> {
        ASSIGN_OR_RETURN(const auto verdicts, pool.Prove(batch));
        std::vector<reduce::Verdict> out;
        for (const verifier::Verdict& v : verdicts) out.push_back(Coarse(v.kind));
        return out;
      },
      reduce_options);
}

// Which of `derived` are proved; counts them as candidates. Rules in `seen` are left out, the
// others join it.
StatusOr<std::vector<rules::Rule>> ProvedOf(std::vector<rules::Rule> derived,
                                            std::set<std::string>& seen, ProofPool& pool,
                                            GenerateReport& report) {
  std::vector<const rules::Rule*> batch;
  for (const rules::Rule& rule : derived) {
    const auto bytes = rules::CanonicalBytes(rule);
    if (bytes.ok() && seen.insert(*bytes).second) batch.push_back(&rule);
  }
  ASSIGN_OR_RETURN(const auto verdicts, pool.Prove(batch));
  std::vector<rules::Rule> out;
  for (std::size_t k = 0; k < batch.size(); ++k) {
    ++report.candidates;
    switch (Coarse(verdicts[k].kind)) {
      case reduce::Verdict::kProved:
        ++report.proved;
        out.push_back(*batch[k]);
        break;
      case reduce::Verdict::kRefuted:
        ++report.refuted;
        break;
      case reduce::Verdict::kUnproved:
        ++report.unproved;
        break;
    }
  }
  return out;
}

// What an enumeration of one rank and one output does not show: the kept rules one rank higher,
// then joins of all. Each is proved like any rule.
StatusOr<std::vector<rules::Rule>> Extended(std::vector<rules::Rule> kept, ProofPool& pool,
                                            GenerateReport& report) {
  std::set<std::string> seen;
  std::vector<rules::Rule> higher, joins;
  for (const rules::Rule& rule : kept) {
    ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(rule));
    seen.insert(std::move(bytes));
    if (auto one = rules::OneRankHigher(rule)) higher.push_back(*std::move(one));
  }
  ASSIGN_OR_RETURN(higher, ProvedOf(std::move(higher), seen, pool, report));
  report.higher_rank_rules = higher.size();
  std::move(higher.begin(), higher.end(), std::back_inserter(kept));
  for (const rules::Rule& rule : kept) {
    for (rules::Rule& join : rules::Join(rule)) joins.push_back(std::move(join));
  }
  ASSIGN_OR_RETURN(joins, ProvedOf(std::move(joins), seen, pool, report));
  report.multi_output_rules = joins.size();
  std::move(joins.begin(), joins.end(), std::back_inserter(kept));
  return kept;
}

// The rules with names and float classes, in the order of the pack.
StatusOr<std::vector<pack::PackedRule>> Packed(std::vector<rules::Rule> all) {
  struct Entry {
    std::string bytes;
    rules::Rule rule;
  };
  std::vector<Entry> entries;
  for (rules::Rule& rule : all) {
    ASSIGN_OR_RETURN(rule, rules::Canonical(rule));
    ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(rule));
    entries.push_back({std::move(bytes), std::move(rule)});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.bytes.size() != b.bytes.size() ? a.bytes.size() < b.bytes.size() : a.bytes < b.bytes;
  });
  std::map<std::string, int> used;
  std::vector<pack::PackedRule> out;
  for (Entry& e : entries) {
    const std::string name = NameOf(e.rule);
    const int number = ++used[name];
    e.rule.name = number == 1 ? name : fmt::format("{}_{}", name, number);
    e.rule.float_class = rules::FloatClassOf(e.rule);
    e.rule.expect = rules::Expect::kProved;
    out.push_back({std::move(e.rule), ""});
  }
  return out;
}

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
  ASSIGN_OR_RETURN(reduce::Reduction reduction, ReduceClasses(found, options, pool));
  report.candidates = reduction.candidates;
  report.proved = reduction.proved;
  report.refuted = reduction.refuted;
  report.unproved = reduction.unproved;
  report.underivable = reduction.underivable;
  report.rounds = reduction.rounds;
  for (const auto& [a, b] : reduction.examples) {
    report.underivable_examples.push_back(found.table.Print(a) + " = " + found.table.Print(b));
  }
  std::vector<rules::Rule> kept;
  for (reduce::KeptRule& k : reduction.rules) kept.push_back(std::move(k.rule));
  ASSIGN_OR_RETURN(kept, Extended(std::move(kept), pool, report));
  report.rules = kept.size();
  report.reduce_seconds = Since(reduce_start);

  out.content.universe = convert::CanonicalText(universe);
  out.content.mode = report.mode;
  out.content.max_operators = static_cast<std::uint64_t>(found.max_operators);
  out.content.counts = {report.graphs_by_size, report.classes,    report.equivalent_pairs,
                        report.candidates,     report.proved,     report.refuted,
                        report.unproved,       report.underivable};
  ASSIGN_OR_RETURN(out.content.rules, Packed(std::move(kept)));
  report.peak_rss_bytes = PeakRssBytes();
  report.seconds = Since(start);
  return out;
}

}  // namespace tenon::cli
