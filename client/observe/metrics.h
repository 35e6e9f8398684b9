// Metrics of a process, in the text format of Prometheus. Counters are counted here; what others
// know anyway (jobs, leases, nodes, the process itself) is asked for when somebody looks.
//
// Names: tenon_NOUN_UNIT, _total for counters, seconds and bytes. Labels have few values each: no
// ids of jobs, tasks or nodes. Counters are there from the beginning, at 0, so that rates see the
// first event.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::observe {

// A value that is asked for.
struct Sample {
  std::string name;
  std::string help;
  bool counter = false;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // tenon_build_info{role,version} is 1.
  void SetBuild(std::string_view role, std::string_view version);
  // Shows these from now on, at 0 as long as nothing happens.
  void ExpectTasks(std::string_view role, std::span<const std::string_view> outcomes);
  void ExpectVerdicts(std::span<const std::string_view> verdicts);

  // tenon_tasks_total{role,outcome}
  void OnTask(std::string_view role, std::string_view outcome);
  // tenon_verdicts_total{verdict,repeatable} and tenon_proof_seconds
  void OnVerdict(std::string_view verdict, bool repeatable, double cpu_seconds);
  // tenon_optimize_seconds{outcome}: of calls of an optimizer, from their first message on
  void ExpectOptimizations(std::span<const std::string_view> outcomes);
  void OnOptimize(std::string_view outcome, double seconds);
  // tenon_rpc_seconds{method,code}: of calls that were served
  void OnCall(std::string_view method, std::string_view code, double seconds);

  // tenon_is_leader and tenon_takeovers_total: of a coordinator, from its first call on
  void OnLeading(bool leads);
  // tenon_etcd_seconds{call,ok}: of calls to etcd, repetitions included
  void OnEtcd(std::string_view call, bool ok, double seconds);

  // Asks `source` whenever somebody looks, until it is forgotten under the same name.
  void Ask(const std::string& name, std::function<std::vector<Sample>()> source);
  // Returns once that source is not being asked any more.
  void Forget(const std::string& name);

  std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Memory, files, threads and CPU time of this process, under the names that all programs use:
// process_resident_memory_bytes, process_open_fds, ..
std::vector<Sample> ProcessSamples();

}  // namespace tenon::observe
