#include "client/observe/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>

namespace tenon::observe {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Histogram;

// From half a millisecond to a minute and a half, doubled and a bit.
const Histogram::BucketBoundaries& Buckets() {
  static const auto* const kBuckets = new Histogram::BucketBoundaries{
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90};
  return *kBuckets;
}

// From a twentieth of a second to half an hour.
const Histogram::BucketBoundaries& LongBuckets() {
  static const auto* const kBuckets = new Histogram::BucketBoundaries{
      0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800};
  return *kBuckets;
}

// One family for each name, in order.
std::vector<prometheus::MetricFamily> Families(const std::vector<Sample>& samples) {
  std::map<std::string, prometheus::MetricFamily> families;
  for (const Sample& sample : samples) {
    prometheus::MetricFamily& family = families[sample.name];
    family.name = sample.name;
    family.help = sample.help;
    family.type = sample.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    (sample.counter ? metric.counter.value : metric.gauge.value) = sample.value;
    family.metric.push_back(std::move(metric));
  }
  std::vector<prometheus::MetricFamily> out;
  for (auto& [name, family] : families) out.push_back(std::move(family));
  return out;
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& tasks =
      BuildCounter().Name("tenon_tasks_total").Help("What became of tasks").Register(registry);
  prometheus::Family<prometheus::Counter>& verdicts = BuildCounter()
                                                          .Name("tenon_verdicts_total")
                                                          .Help("Verdicts of this verifier")
                                                          .Register(registry);
  prometheus::Family<Histogram>& proofs =
      BuildHistogram().Name("tenon_proof_seconds").Help("CPU time of a proof").Register(registry);
  prometheus::Family<Histogram>& calls = BuildHistogram()
                                             .Name("tenon_rpc_seconds")
                                             .Help("Duration of calls that were served")
                                             .Register(registry);
  prometheus::Family<Histogram>& optimizations =
      BuildHistogram()
          .Name("tenon_optimize_seconds")
          .Help("Duration of calls of an optimizer, by how they ended")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& is_leader =
      prometheus::BuildGauge()
          .Name("tenon_is_leader")
          .Help("Whether this coordinator serves: 1, or waits for its turn: 0")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& takeovers =
      BuildCounter()
          .Name("tenon_takeovers_total")
          .Help("How often this coordinator began to lead")
          .Register(registry);
  prometheus::Family<Histogram>& etcd = BuildHistogram()
                                            .Name("tenon_etcd_seconds")
                                            .Help("Duration of calls to etcd")
                                            .Register(registry);
  std::mutex leading_mutex;
  prometheus::Counter& Tasks(std::string_view role, std::string_view outcome) {
    return tasks.Add({{"role", std::string(role)}, {"outcome", std::string(outcome)}});
  }
  prometheus::Counter& Verdicts(std::string_view verdict, bool repeatable) {
    return verdicts.Add(
        {{"verdict", std::string(verdict)}, {"repeatable", repeatable ? "true" : "false"}});
  }

  std::mutex mutex;  // Of the sources, while they are asked, too.
  std::map<std::string, std::function<std::vector<Sample>()>> sources;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::SetBuild(std::string_view role, std::string_view version) {
  prometheus::BuildGauge()
      .Name("tenon_build_info")
      .Help("1, with the role and the version of this process")
      .Register(impl_->registry)
      .Add({{"role", std::string(role)}, {"version", std::string(version)}})
      .Set(1);
}

void Metrics::ExpectTasks(std::string_view role, std::span<const std::string_view> outcomes) {
  for (const std::string_view outcome : outcomes) impl_->Tasks(role, outcome);
}

void Metrics::ExpectVerdicts(std::span<const std::string_view> verdicts) {
  for (const std::string_view verdict : verdicts) {
    impl_->Verdicts(verdict, true);
    impl_->Verdicts(verdict, false);
  }
  impl_->proofs.Add({}, Buckets());
}

void Metrics::OnTask(std::string_view role, std::string_view outcome) {
  impl_->Tasks(role, outcome).Increment();
}

void Metrics::OnVerdict(std::string_view verdict, bool repeatable, double cpu_seconds) {
  impl_->Verdicts(verdict, repeatable).Increment();
  impl_->proofs.Add({}, Buckets()).Observe(cpu_seconds);
}

void Metrics::ExpectOptimizations(std::span<const std::string_view> outcomes) {
  for (const std::string_view outcome : outcomes) {
    impl_->optimizations.Add({{"outcome", std::string(outcome)}}, LongBuckets());
  }
}

void Metrics::OnOptimize(std::string_view outcome, double seconds) {
  impl_->optimizations.Add({{"outcome", std::string(outcome)}}, LongBuckets()).Observe(seconds);
}

void Metrics::OnCall(std::string_view method, std::string_view code, double seconds) {
  impl_->calls.Add({{"method", std::string(method)}, {"code", std::string(code)}}, Buckets())
      .Observe(seconds);
}

void Metrics::OnLeading(bool leads) {
  const std::lock_guard lock(impl_->leading_mutex);
  auto& is_leader = impl_->is_leader.Add({});
  auto& takeovers = impl_->takeovers.Add({});
  if (leads && is_leader.Value() == 0) takeovers.Increment();
  is_leader.Set(leads ? 1 : 0);
}

void Metrics::OnEtcd(std::string_view call, bool ok, double seconds) {
  impl_->etcd.Add({{"call", std::string(call)}, {"ok", ok ? "true" : "false"}}, Buckets())
      .Observe(seconds);
}

void Metrics::Ask(const std::string& name, std::function<std::vector<Sample>()> source) {
  const std::lock_guard lock(impl_->mutex);
  impl_->sources[name] = std::move(source);
}

void Metrics::Forget(const std::string& name) {
  const std::lock_guard lock(impl_->mutex);
  impl_->sources.erase(name);
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  std::vector<Sample> samples = ProcessSamples();
  {
    const std::lock_guard lock(impl_->mutex);
    for (const auto& [name, source] : impl_->sources) {
      for (Sample& sample : source()) samples.push_back(std::move(sample));
    }
  }
  for (auto& family : Families(samples)) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tenon::observe
