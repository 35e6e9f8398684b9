// What a standby answers.
#include "coordinator/standby/service.h"

#include <fmt/core.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "client/rpc/job_client.h"
#include "client/rpc/registry_client.h"
#include "client/rpc/work_client.h"
#include "proto/convert/status.h"

namespace tenon::coordinator {
namespace {

class StandbyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto standby = Standby::Start("127.0.0.1:0", nullptr);
    ASSERT_TRUE(standby.ok()) << standby.status();
    standby_ = *std::move(standby);
    rpc::ConnectionOptions options;
    // One attempt: a pause would be longer than any call.
    options.backoff = {.initial = rpc::Milliseconds(600'000), .max = rpc::Milliseconds(600'000)};
    connection_ = *rpc::Connection::Open(fmt::format("127.0.0.1:{}", standby_->port()), options);
  }
  void ExpectRefused(const Status& status, const std::string& leader) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    const convert::ErrorDetails details = convert::DetailsOf(status);
    EXPECT_EQ(details.reason, rpc::kNotLeader);
    const auto found = details.metadata.find(rpc::kLeaderKey);
    EXPECT_EQ(found == details.metadata.end() ? "" : found->second, leader);
  }

  std::unique_ptr<Standby> standby_;
  std::shared_ptr<rpc::Connection> connection_;
};

TEST_F(StandbyTest, EveryCallIsRefusedWithTheLeadersAddress) {
  const rpc::JobClient jobs(connection_);
  ExpectRefused(jobs.Get("j1").status(), "");
  standby_->SetLeader("other:7400");
  ExpectRefused(jobs.Get("j1").status(), "other:7400");
  ExpectRefused(jobs.Submit(convert::JobSpec{}).status(), "other:7400");
  // Streams of either direction, too.
  ExpectRefused(jobs.Watch(
                        "j1", [](const auto&) { return true; }, {}, rpc::kQuickCall)
                    .status(),
                "other:7400");
  ExpectRefused(rpc::RegistryClient(connection_).Push("bytes", "hash").status(), "other:7400");
  ExpectRefused(rpc::WorkClient(connection_).Heartbeat({.node_id = "n"}).status(), "other:7400");
  standby_->SetLeader(std::nullopt);
  ExpectRefused(jobs.Get("j1").status(), "");
}

TEST_F(StandbyTest, ItIsNotServingForTheHealthService) {
  grpc::GenericStub stub(connection_->channel());
  grpc::ClientContext context;
  connection_->Prepare(context, rpc::Milliseconds(60'000));
  grpc::CompletionQueue queue;
  grpc::Slice nothing;
  const grpc::ByteBuffer empty(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", empty, &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  ASSERT_TRUE(status.ok()) << status.error_message();
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(answer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& s : slices)
    bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  EXPECT_EQ(bytes, "\x08\x02");  // status = NOT_SERVING
}

TEST_F(StandbyTest, ItsPortIsFreeAfterIt) {
  const std::string address = fmt::format("127.0.0.1:{}", standby_->port());
  EXPECT_TRUE(absl::IsUnavailable(Standby::Start(address, nullptr).status()));
  standby_.reset();
  EXPECT_TRUE(Standby::Start(address, nullptr).ok());
}

}  // namespace
}  // namespace tenon::coordinator
