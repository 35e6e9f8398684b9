#include "proto/convert/work.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/graph/universe.h"
#include "tenon/v1/work.pb.h"

namespace tenon::convert {
namespace {

constexpr int kEndpointsMax = 256;
constexpr int kRulesMax = 256;
constexpr int kPartsMax = 1024;
constexpr std::size_t kRuleBytesMax = std::size_t{1} << 20;
constexpr std::uint32_t kLeasesMax = 64;
constexpr std::uint32_t kWaitMaxMs = 30'000;
constexpr int kHeldMax = 4096;
constexpr std::size_t kReasonMax = 16 << 10;
constexpr std::size_t kCertificateMax = std::size_t{1} << 20;

Status Bad(std::string_view field, std::string description) {
  return Violations({{std::string(field), std::move(description)}});
}
Status CheckId(std::string_view field, std::string_view id) {
  if (IsId(id)) return OkStatus();
  return Bad(field, fmt::format("'{}' is no id; give 1 to 64 of A-Za-z0-9._-", id.substr(0, 80)));
}
// Ids of tasks and leases hold those of jobs.
Status CheckPath(std::string_view field, std::string_view id) {
  const bool fits =
      !id.empty() && id.size() <= 256 && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-' || c == '/' || c == ':';
      });
  if (fits) return OkStatus();
  return Bad(field,
             fmt::format("'{}' is no id; give 1 to 256 of A-Za-z0-9._/:-", id.substr(0, 80)));
}

StatusOr<EnumerationTask> ToEnumeration(const v1::EnumerationTask& m) {
  EnumerationTask out;
  out.universe = m.universe();
  if (out.universe.empty() || out.universe.size() > kUniverseTextMax) {
    return Bad("enumeration.universe",
               fmt::format("{} bytes; 1 to {}", out.universe.size(), kUniverseTextMax));
  }
  out.max_operators = m.max_operators();
  if (out.max_operators < 1 || out.max_operators > graph::kMaxOperatorsMax) {
    return Bad("enumeration.max_operators",
               fmt::format("{}; 1 to {}", out.max_operators, graph::kMaxOperatorsMax));
  }
  if (m.mode() < 0 || m.mode() > 2) {
    return Bad("enumeration.mode", fmt::format("{} is unknown", int(m.mode())));
  }
  out.mode = m.mode() == v1::ENUMERATION_MODE_CANONICAL ? EnumerationMode::kCanonical
                                                        : EnumerationMode::kExhaustive;
  out.shards = m.shards();
  if (out.shards < 1 || out.shards > kShardsMax) {
    return Bad("enumeration.shards", fmt::format("{}; 1 to {}", out.shards, kShardsMax));
  }
  out.seed = m.seed();
  out.memory_limit_bytes = m.memory_limit_bytes();
  if (m.time_limit_ms() > kTimeLimitMaxMs) return Bad("enumeration.time_limit_ms", "too long");
  out.time_limit = Milliseconds(m.time_limit_ms());
  const v1::StoreMap& stores = m.stores();
  if (stores.endpoints_size() < 1 || stores.endpoints_size() > kEndpointsMax) {
    return Bad("enumeration.stores.endpoints",
               fmt::format("{} of them; 1 to {}", stores.endpoints_size(), kEndpointsMax));
  }
  for (const std::string& e : stores.endpoints()) {
    if (e.empty() || e.size() > 256) return Bad("enumeration.stores.endpoints", "not HOST:PORT");
    out.stores.endpoints.push_back(e);
  }
  out.stores.table = stores.table();
  out.stores.bucket_bits = stores.bucket_bits();
  if (out.stores.bucket_bits > 20) return Bad("enumeration.stores.bucket_bits", "more than 20");
  return out;
}

void FromEnumeration(const EnumerationTask& t, v1::EnumerationTask& m) {
  m.set_universe(t.universe);
  m.set_max_operators(t.max_operators);
  m.set_mode(static_cast<v1::EnumerationMode>(t.mode));
  m.set_shards(t.shards);
  m.set_seed(t.seed);
  m.set_memory_limit_bytes(t.memory_limit_bytes);
  m.set_time_limit_ms(static_cast<std::uint64_t>(t.time_limit.count()));
  for (const std::string& e : t.stores.endpoints) m.mutable_stores()->add_endpoints(e);
  m.mutable_stores()->set_table(t.stores.table);
  m.mutable_stores()->set_bucket_bits(t.stores.bucket_bits);
}

StatusOr<ProofTask> ToProofs(const v1::ProofTask& m) {
  ProofTask out;
  out.semantics_version = m.semantics_version();
  if (m.rules_size() < 1 || m.rules_size() > kRulesMax) {
    return Bad("proofs.rules", fmt::format("{} of them; 1 to {}", m.rules_size(), kRulesMax));
  }
  for (const std::string& rule : m.rules()) {
    if (rule.empty() || rule.size() > kRuleBytesMax) {
      return Bad("proofs.rules", fmt::format("a rule of {} bytes", rule.size()));
    }
    out.rules.push_back(rule);
  }
  out.budget_scale = m.budget_scale();
  if (out.budget_scale < 1 || out.budget_scale > 1000) {
    return Bad("proofs.budget_scale", fmt::format("{}; 1 to 1000", out.budget_scale));
  }
  return out;
}

StatusOr<ProofResult> ToResult(const v1::ProofResult& m) {
  if (m.verdicts_size() < 1 || m.verdicts_size() > kRulesMax) {
    return Bad("proofs.verdicts", fmt::format("{} of them; 1 to {}", m.verdicts_size(), kRulesMax));
  }
  ProofResult out;
  for (const v1::ProofVerdict& v : m.verdicts()) {
    if (v.kind() < 1 || v.kind() > 6) {
      return Bad("proofs.verdicts.kind", fmt::format("{} is unknown", int(v.kind())));
    }
    if (v.certificate().size() > kCertificateMax) {
      return Bad("proofs.verdicts.certificate", "more than 1 MiB");
    }
    out.verdicts.push_back({static_cast<VerdictKind>(v.kind()), v.reason().substr(0, kReasonMax),
                            v.cached(), v.repeatable(), v.rlimit(), v.certificate()});
  }
  return out;
}

Status CheckSha256(std::string_view field, std::string_view digits) {
  const bool fits =
      digits.size() == 64 && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return fits ? OkStatus() : Bad(field, "not 64 hexadecimal digits");
}

StatusOr<CollectTask> ToCollect(const v1::CollectTask& m) {
  CollectTask out;
  ASSIGN_OR_RETURN(out.enumeration, ToEnumeration(m.enumeration()));
  out.artifact = m.artifact();
  RETURN_IF_ERROR(CheckId("task.collect.artifact", out.artifact));
  out.first = m.first_bucket();
  out.end = m.end_bucket();
  const std::uint32_t buckets = std::uint32_t{1} << out.enumeration.stores.bucket_bits;
  if (out.first >= out.end || out.end > buckets) {
    return Bad("task.collect.end_bucket",
               fmt::format("buckets {} to {} of {}", out.first, out.end, buckets));
  }
  out.store = m.store();
  if (out.store >= out.enumeration.stores.endpoints.size()) {
    return Bad("task.collect.store", fmt::format("there is no store {}", out.store));
  }
  return out;
}

StatusOr<JoinTask> ToJoin(const v1::JoinTask& m) {
  JoinTask out;
  ASSIGN_OR_RETURN(out.enumeration, ToEnumeration(m.enumeration()));
  if (m.parts_size() < 1 || m.parts_size() > kPartsMax) {
    return Bad("task.join.parts", fmt::format("{} of them; 1 to {}", m.parts_size(), kPartsMax));
  }
  for (const v1::JoinTask::Part& part : m.parts()) {
    RETURN_IF_ERROR(CheckId("task.join.parts.artifact", part.artifact()));
    RETURN_IF_ERROR(CheckSha256("task.join.parts.sha256", part.sha256()));
    if (part.store() >= out.enumeration.stores.endpoints.size()) {
      return Bad("task.join.parts.store", fmt::format("there is no store {}", part.store()));
    }
    out.parts.push_back({part.artifact(), part.store(), part.bytes(), part.sha256()});
  }
  out.artifact = m.artifact();
  RETURN_IF_ERROR(CheckId("task.join.artifact", out.artifact));
  return out;
}

StatusOr<CollectResult> ToResult(const v1::CollectResult& m, const std::string& field) {
  if (m.counts().graphs_by_size_size() > graph::kMaxOperatorsMax) {
    return Bad(field + ".counts.graphs_by_size", "more sizes than there can be");
  }
  RETURN_IF_ERROR(CheckSha256(field + ".artifact_sha256", m.artifact_sha256()));
  CollectResult out;
  const auto& counts = m.counts();
  out.graphs_by_size.assign(counts.graphs_by_size().begin(), counts.graphs_by_size().end());
  out.graphs = counts.graphs();
  out.classes = counts.classes();
  out.equivalent_pairs = counts.equivalent_pairs();
  out.artifact_bytes = m.artifact_bytes();
  out.artifact_sha256 = m.artifact_sha256();
  return out;
}

void FromResult(const CollectResult& r, v1::CollectResult& m) {
  auto& counts = *m.mutable_counts();
  counts.mutable_graphs_by_size()->Assign(r.graphs_by_size.begin(), r.graphs_by_size.end());
  counts.set_graphs(r.graphs);
  counts.set_classes(r.classes);
  counts.set_equivalent_pairs(r.equivalent_pairs);
  m.set_artifact_bytes(r.artifact_bytes);
  m.set_artifact_sha256(r.artifact_sha256);
}

struct SetResult {
  v1::CompleteRequest& m;
  void operator()(const ShardResult& r) const {
    m.mutable_shard()->set_graphs(r.graphs);
    m.mutable_shard()->set_records(r.records);
    m.mutable_shard()->set_bytes(r.bytes);
  }
  void operator()(const CollectResult& r) const { FromResult(r, *m.mutable_collect()); }
  void operator()(const JoinResult& r) const { FromResult(r.all, *m.mutable_join()); }
  void operator()(const ProofResult& r) const {
    m.mutable_proofs();
    for (const ProofVerdict& v : r.verdicts) {
      v1::ProofVerdict& to = *m.mutable_proofs()->add_verdicts();
      to.set_kind(static_cast<v1::VerdictKind>(v.kind));
      to.set_reason(v.reason);
      to.set_cached(v.cached);
      to.set_repeatable(v.repeatable);
      to.set_rlimit(v.rlimit);
      to.set_certificate(v.certificate);
    }
  }
};

struct SetWork {
  v1::Task& m;
  void operator()(const ShardTask& t) const {
    FromEnumeration(t.enumeration, *m.mutable_shard()->mutable_enumeration());
    m.mutable_shard()->set_shard(t.shard);
  }
  void operator()(const CollectTask& t) const {
    FromEnumeration(t.enumeration, *m.mutable_collect()->mutable_enumeration());
    m.mutable_collect()->set_artifact(t.artifact);
    m.mutable_collect()->set_first_bucket(t.first);
    m.mutable_collect()->set_end_bucket(t.end);
    m.mutable_collect()->set_store(t.store);
  }
  void operator()(const JoinTask& t) const {
    FromEnumeration(t.enumeration, *m.mutable_join()->mutable_enumeration());
    for (const JoinTask::Part& part : t.parts) {
      v1::JoinTask::Part& to = *m.mutable_join()->add_parts();
      to.set_artifact(part.artifact);
      to.set_store(part.store);
      to.set_bytes(part.bytes);
      to.set_sha256(part.sha256);
    }
    m.mutable_join()->set_artifact(t.artifact);
  }
  void operator()(const ProofTask& t) const {
    auto& to = *m.mutable_proofs();
    to.set_semantics_version(t.semantics_version);
    for (const std::string& rule : t.rules) to.add_rules(rule);
    to.set_budget_scale(t.budget_scale);
  }
};

}  // namespace

TaskKind KindOf(const Task& task) { return static_cast<TaskKind>(task.work.index() + 1); }

StatusOr<Task> FromMessage(const v1::Task& m) {
  Task out;
  out.id = m.id();
  RETURN_IF_ERROR(CheckPath("task.id", out.id));
  out.job_id = m.job_id();
  RETURN_IF_ERROR(CheckId("task.job_id", out.job_id));
  switch (m.task_case()) {
    case v1::Task::kShard: {
      ShardTask t;
      ASSIGN_OR_RETURN(t.enumeration, ToEnumeration(m.shard().enumeration()));
      t.shard = m.shard().shard();
      if (t.shard >= t.enumeration.shards) {
        return Bad("task.shard.shard", fmt::format("{} of {}", t.shard, t.enumeration.shards));
      }
      out.work = std::move(t);
      return out;
    }
    case v1::Task::kCollect: {
      ASSIGN_OR_RETURN(out.work, ToCollect(m.collect()));
      return out;
    }
    case v1::Task::kJoin: {
      ASSIGN_OR_RETURN(out.work, ToJoin(m.join()));
      return out;
    }
    case v1::Task::kProofs: {
      ASSIGN_OR_RETURN(out.work, ToProofs(m.proofs()));
      return out;
    }
    case v1::Task::TASK_NOT_SET:
      break;
  }
  return Bad("task.task", "missing, or of a later version");
}

void ToMessage(const Task& task, v1::Task& m) {
  m.set_id(task.id);
  m.set_job_id(task.job_id);
  std::visit(SetWork{m}, task.work);
}

StatusOr<LeaseRequest> FromMessage(const v1::LeaseRequest& m) {
  LeaseRequest out;
  out.request_id = m.request_id();
  RETURN_IF_ERROR(CheckId("request_id", out.request_id));
  out.node_id = m.node_id();
  RETURN_IF_ERROR(CheckId("node_id", out.node_id));
  constexpr int kKinds = static_cast<int>(TaskKind::kJoin);
  if (m.kinds().empty() || m.kinds_size() > kKinds) {
    return Bad("kinds", fmt::format("give 1 to {} kinds of tasks", kKinds));
  }
  for (const int kind : m.kinds()) {
    if (kind < 1 || kind > kKinds) return Bad("kinds", fmt::format("{} is unknown", kind));
    out.kinds.push_back(static_cast<TaskKind>(kind));
  }
  out.max_leases = m.max_leases();
  if (out.max_leases < 1 || out.max_leases > kLeasesMax) {
    return Bad("max_leases", fmt::format("{}; 1 to {}", out.max_leases, kLeasesMax));
  }
  if (m.wait_ms() > kWaitMaxMs) {
    return Bad("wait_ms", fmt::format("{}; at most {}", m.wait_ms(), kWaitMaxMs));
  }
  out.wait = Milliseconds(m.wait_ms());
  return out;
}

void ToMessage(const LeaseRequest& r, v1::LeaseRequest& m) {
  m.set_request_id(r.request_id);
  m.set_node_id(r.node_id);
  for (const TaskKind kind : r.kinds) m.add_kinds(static_cast<v1::TaskKind>(kind));
  m.set_max_leases(r.max_leases);
  m.set_wait_ms(static_cast<std::uint32_t>(r.wait.count()));
}

StatusOr<LeaseResponse> FromMessage(const v1::LeaseResponse& m) {
  LeaseResponse out;
  for (const v1::Lease& l : m.leases()) {
    Lease lease;
    lease.id = l.id();
    RETURN_IF_ERROR(CheckPath("lease.id", lease.id));
    ASSIGN_OR_RETURN(lease.task, FromMessage(l.task()));
    if (l.ttl_ms() < 1 || l.ttl_ms() > 86'400'000) {
      return Bad("lease.ttl_ms", fmt::format("{}; 1 ms to a day", l.ttl_ms()));
    }
    lease.ttl = Milliseconds(l.ttl_ms());
    lease.attempt = l.attempt();
    out.leases.push_back(std::move(lease));
  }
  out.retry_after = Milliseconds(m.retry_after_ms());
  return out;
}

void ToMessage(const LeaseResponse& r, v1::LeaseResponse& m) {
  for (const Lease& lease : r.leases) {
    v1::Lease& to = *m.add_leases();
    to.set_id(lease.id);
    ToMessage(lease.task, *to.mutable_task());
    to.set_ttl_ms(lease.ttl.count());
    to.set_attempt(lease.attempt);
  }
  m.set_retry_after_ms(static_cast<std::uint32_t>(r.retry_after.count()));
}

StatusOr<Heartbeat> FromMessage(const v1::HeartbeatRequest& m) {
  Heartbeat out;
  out.node_id = m.node_id();
  RETURN_IF_ERROR(CheckId("node_id", out.node_id));
  out.role = m.role();
  if (out.role != "worker" && out.role != "verifier" && out.role != "store") {
    return Bad("role", fmt::format("'{}'; give worker, verifier or store", out.role.substr(0, 80)));
  }
  out.address = m.address();
  if (out.address.size() > 256 || (out.role == "store" && out.address.empty())) {
    return Bad("address", "give HOST:PORT, at most 256 bytes; a store must");
  }
  out.version = m.version();
  if (out.version.size() > 64) return Bad("version", "more than 64 bytes");
  if (m.lease_ids_size() > kHeldMax) return Bad("lease_ids", "more than 4096");
  for (const std::string& id : m.lease_ids()) {
    RETURN_IF_ERROR(CheckPath("lease_ids", id));
    out.lease_ids.push_back(id);
  }
  out.draining = m.draining();
  return out;
}

void ToMessage(const Heartbeat& h, v1::HeartbeatRequest& m) {
  m.set_node_id(h.node_id);
  m.set_role(h.role);
  m.set_address(h.address);
  m.set_version(h.version);
  for (const std::string& id : h.lease_ids) m.add_lease_ids(id);
  m.set_draining(h.draining);
}

HeartbeatResponse FromMessage(const v1::HeartbeatResponse& m) {
  return {{m.lost_lease_ids().begin(), m.lost_lease_ids().end()},
          Milliseconds(m.next_heartbeat_ms())};
}

void ToMessage(const HeartbeatResponse& r, v1::HeartbeatResponse& m) {
  for (const std::string& id : r.lost_lease_ids) m.add_lost_lease_ids(id);
  m.set_next_heartbeat_ms(static_cast<std::uint32_t>(r.next_heartbeat.count()));
}

StatusOr<Complete> FromMessage(const v1::CompleteRequest& m) {
  Complete out;
  out.lease_id = m.lease_id();
  RETURN_IF_ERROR(CheckPath("lease_id", out.lease_id));
  out.task_id = m.task_id();
  RETURN_IF_ERROR(CheckPath("task_id", out.task_id));
  out.node_id = m.node_id();
  RETURN_IF_ERROR(CheckId("node_id", out.node_id));
  constexpr std::uint64_t kCpuMaxMs = std::uint64_t{1} << 40;
  out.cpu = Milliseconds(std::min(m.cpu_ms(), kCpuMaxMs));
  switch (m.result_case()) {
    case v1::CompleteRequest::kShard:
      out.result = ShardResult{m.shard().graphs(), m.shard().records(), m.shard().bytes()};
      return out;
    case v1::CompleteRequest::kCollect: {
      ASSIGN_OR_RETURN(out.result, ToResult(m.collect(), "collect"));
      return out;
    }
    case v1::CompleteRequest::kJoin: {
      ASSIGN_OR_RETURN(CollectResult all, ToResult(m.join(), "join"));
      out.result = JoinResult{std::move(all)};
      return out;
    }
    case v1::CompleteRequest::kProofs: {
      ASSIGN_OR_RETURN(out.result, ToResult(m.proofs()));
      return out;
    }
    case v1::CompleteRequest::RESULT_NOT_SET:
      break;
  }
  return Bad("result", "missing, or of a later version");
}

void ToMessage(const Complete& c, v1::CompleteRequest& m) {
  m.set_lease_id(c.lease_id);
  m.set_task_id(c.task_id);
  m.set_node_id(c.node_id);
  m.set_cpu_ms(static_cast<std::uint64_t>(c.cpu.count()));
  std::visit(SetResult{m}, c.result);
}

StatusOr<Release> FromMessage(const v1::ReleaseRequest& m) {
  Release out;
  out.lease_id = m.lease_id();
  RETURN_IF_ERROR(CheckPath("lease_id", out.lease_id));
  out.task_id = m.task_id();
  RETURN_IF_ERROR(CheckPath("task_id", out.task_id));
  out.node_id = m.node_id();
  RETURN_IF_ERROR(CheckId("node_id", out.node_id));
  out.error = m.error().substr(0, kReasonMax);
  return out;
}

void ToMessage(const Release& r, v1::ReleaseRequest& m) {
  m.set_lease_id(r.lease_id);
  m.set_task_id(r.task_id);
  m.set_node_id(r.node_id);
  m.set_error(r.error);
}

}  // namespace tenon::convert
