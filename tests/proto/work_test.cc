// Work from messages: what is sent arrives, what does not fit is refused with its field.
#include "proto/convert/work.h"

#include <functional>

#include <gtest/gtest.h>

#include "tenon/v1/work.pb.h"

namespace tenon::convert {
namespace {

EnumerationTask AnEnumeration() {
  return {"name: \"u\"",         3, EnumerationMode::kCanonical, 8, 5, 1 << 30, Milliseconds(9),
          {{"a:1", "b:2"}, 7, 4}};
}
std::vector<Task> Tasks() {
  return {{"j1/shard/7", "j1", ShardTask{AnEnumeration(), 7}},
          {"j1/collect/1", "j1", CollectTask{AnEnumeration(), "j1.part1", 8, 16, 1}},
          {"j1/proofs/3/12", "j1", ProofTask{1, {"rule", std::string("\0\xff", 2)}, 2}},
          {"j1/join", "j1",
           JoinTask{
               AnEnumeration(),
               {{"j1.part0", 0, 9, std::string(64, 'b')}, {"j1.part1", 1, 0, std::string(64, 'c')}},
               "j1.classes"}}};
}
std::vector<Complete> Results() {
  return {{"1-2:j1/shard/7", "j1/shard/7", "n1", Milliseconds(3), ShardResult{4, 5, 6}},
          {"1-3:j1/collect/1", "j1/collect/1", "n1", Milliseconds(3),
           CollectResult{{1, 2}, 3, 4, 5, 6, std::string(64, 'a')}},
          {"1-4:j1/proofs/3/12", "j1/proofs/3/12", "n2", Milliseconds(0),
           ProofResult{{{VerdictKind::kRefuted, "m=1", true, true, 9, "cert"}}}},
          {"1-5:j1/join", "j1/join", "n1", Milliseconds(3),
           JoinResult{{{1, 2}, 3, 4, 5, 6, std::string(64, 'a')}}}};
}

void Refused(const Status& status, const std::string& field) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << field << ": " << status;
  const auto violations = DetailsOf(status).violations;
  ASSERT_EQ(violations.size(), 1u) << field;
  EXPECT_EQ(violations[0].field, field);
}

TEST(WorkTest, WhatIsSentArrives) {
  for (const Task& task : Tasks()) {
    v1::Task m;
    ToMessage(task, m);
    EXPECT_EQ(*FromMessage(m), task);
  }
  for (const Complete& result : Results()) {
    v1::CompleteRequest m;
    ToMessage(result, m);
    EXPECT_EQ(*FromMessage(m), result);
  }
  LeaseResponse leases{{{"1-2:j1/collect/1", Tasks()[1], Milliseconds(15'000), 2}},
                       Milliseconds(7)};
  v1::LeaseResponse response;
  ToMessage(leases, response);
  EXPECT_EQ(FromMessage(response)->leases, leases.leases);
  EXPECT_EQ(FromMessage(response)->retry_after, leases.retry_after);
  const LeaseRequest lease{
      "r", "n", {TaskKind::kProofs, TaskKind::kShard}, 64, Milliseconds(30'000)};
  v1::LeaseRequest request;
  ToMessage(lease, request);
  EXPECT_EQ(*FromMessage(request), lease);
  const Heartbeat beat{"n", "store", "h:1", "0.1", {"1-2:j1/shard/7"}, true};
  v1::HeartbeatRequest heartbeat;
  ToMessage(beat, heartbeat);
  EXPECT_EQ(*FromMessage(heartbeat), beat);
  const Release release{"1-2:j1/shard/7", "j1/shard/7", "n", "why"};
  v1::ReleaseRequest released;
  ToMessage(release, released);
  EXPECT_EQ(*FromMessage(released), release);
}

template <class Message>
using Cases = std::vector<std::pair<std::string, std::function<void(Message&)>>>;

template <class Message, class Value>
void CheckCases(const Value& good, const Cases<Message>& cases) {
  for (const auto& [field, spoil] : cases) {
    Message m;
    ToMessage(good, m);
    spoil(m);
    Refused(FromMessage(m).status(), field);
  }
}

TEST(WorkTest, TasksThatDoNotFitAreRefused) {
  using E = v1::EnumerationTask;
  const auto in = [](std::function<void(E&)> spoil) {
    return [=](v1::Task& m) { spoil(*m.mutable_shard()->mutable_enumeration()); };
  };
  CheckCases<v1::Task>(
      Tasks()[0],
      {{"task.id", [](auto& m) { m.set_id("a b"); }},
       {"task.job_id", [](auto& m) { m.set_job_id(""); }},
       {"task.task", [](auto& m) { m.clear_shard(); }},
       {"task.shard.shard", [](auto& m) { m.mutable_shard()->set_shard(8); }},
       {"enumeration.universe", in([](E& e) { e.clear_universe(); })},
       {"enumeration.max_operators", in([](E& e) { e.set_max_operators(0); })},
       {"enumeration.mode", in([](E& e) { e.set_mode(static_cast<v1::EnumerationMode>(7)); })},
       {"enumeration.shards", in([](E& e) { e.set_shards(0); })},
       {"enumeration.time_limit_ms", in([](E& e) { e.set_time_limit_ms(UINT64_MAX); })},
       {"enumeration.stores.endpoints", in([](E& e) { e.mutable_stores()->clear_endpoints(); })},
       {"enumeration.stores.endpoints", in([](E& e) { e.mutable_stores()->add_endpoints(""); })},
       {"enumeration.stores.bucket_bits",
        in([](E& e) { e.mutable_stores()->set_bucket_bits(21); })}});
  CheckCases<v1::Task>(Tasks()[1], {{"task.collect.artifact",
                                     [](auto& m) { m.mutable_collect()->set_artifact("../x"); }}});
  CheckCases<v1::Task>(
      Tasks()[2],
      {{"proofs.rules", [](auto& m) { m.mutable_proofs()->clear_rules(); }},
       {"proofs.rules", [](auto& m) { m.mutable_proofs()->add_rules(""); }},
       {"proofs.budget_scale", [](auto& m) { m.mutable_proofs()->set_budget_scale(0); }}});
}

TEST(WorkTest, RequestsThatDoNotFitAreRefused) {
  CheckCases<v1::LeaseRequest>(LeaseRequest{"r", "n", {TaskKind::kShard}, 1, Milliseconds(0)},
                               {{"request_id", [](auto& m) { m.clear_request_id(); }},
                                {"node_id", [](auto& m) { m.set_node_id("a/b"); }},
                                {"kinds", [](auto& m) { m.clear_kinds(); }},
                                {"kinds", [](auto& m) { m.add_kinds(v1::TASK_KIND_UNSPECIFIED); }},
                                {"max_leases", [](auto& m) { m.set_max_leases(0); }},
                                {"max_leases", [](auto& m) { m.set_max_leases(65); }},
                                {"wait_ms", [](auto& m) { m.set_wait_ms(30'001); }}});
  CheckCases<v1::HeartbeatRequest>(
      Heartbeat{"n", "worker", "", "", {}, false},
      {{"node_id", [](auto& m) { m.clear_node_id(); }},
       {"role", [](auto& m) { m.set_role("king"); }},
       {"address", [](auto& m) { m.set_role("store"); }},
       {"version", [](auto& m) { m.set_version(std::string(65, 'v')); }},
       {"lease_ids", [](auto& m) { m.add_lease_ids("a b"); }},
       {"lease_ids", [](auto& m) {
          for (int k = 0; k < 4097; ++k) m.add_lease_ids("x");
        }}});
  CheckCases<v1::ReleaseRequest>(Release{"l", "t", "n", ""},
                                 {{"lease_id", [](auto& m) { m.clear_lease_id(); }},
                                  {"task_id", [](auto& m) { m.clear_task_id(); }},
                                  {"node_id", [](auto& m) { m.clear_node_id(); }}});
}

TEST(WorkTest, ResultsThatDoNotFitAreRefused) {
  CheckCases<v1::CompleteRequest>(
      Results()[1], {{"lease_id", [](auto& m) { m.clear_lease_id(); }},
                     {"task_id", [](auto& m) { m.set_task_id(std::string(257, 'x')); }},
                     {"node_id", [](auto& m) { m.clear_node_id(); }},
                     {"result", [](auto& m) { m.clear_collect(); }},
                     {"collect.artifact_sha256",
                      [](auto& m) { m.mutable_collect()->set_artifact_sha256("abc"); }},
                     {"collect.counts.graphs_by_size", [](auto& m) {
                        for (int k = 0; k < 9; ++k)
                          m.mutable_collect()->mutable_counts()->add_graphs_by_size(1);
                      }}});
  CheckCases<v1::CompleteRequest>(
      Results()[2],
      {{"proofs.verdicts", [](auto& m) { m.mutable_proofs()->clear_verdicts(); }},
       {"proofs.verdicts.kind",
        [](auto& m) { m.mutable_proofs()->mutable_verdicts(0)->clear_kind(); }},
       {"proofs.verdicts.certificate", [](auto& m) {
          m.mutable_proofs()->mutable_verdicts(0)->set_certificate(std::string((1 << 20) + 1, 'c'));
        }}});
}

}  // namespace
}  // namespace tenon::convert
