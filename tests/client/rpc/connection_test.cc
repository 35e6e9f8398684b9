// Connections: addresses, credentials, and repetition with an attempt of the test's own.
#include "client/rpc/connection.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "proto/convert/status.h"

namespace tenon::rpc {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

std::shared_ptr<Connection> Nowhere(const std::string& endpoints = "127.0.0.1:1") {
  ConnectionOptions options;
  options.backoff = {.initial = 1ms, .factor = 2, .max = 4ms};
  return *Connection::Open(endpoints, options);
}

TEST(ConnectionTest, AddressesAreChecked) {
  for (const char* bad : {"", "host", "host:", ":1", "host:0", "host:65536", "host:x", "host:1x",
                          "http://host:1", "unix:", "host:123456"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open(bad).status())) << bad;
  }
  for (const char* good : {"host:1", "127.0.0.1:65535", "[::1]:80", "unix:/tmp/socket"}) {
    EXPECT_TRUE(Connection::Open(good).ok()) << good;
  }
}

TEST(ConnectionTest, ATokenIsNotSentOpenlyToOtherMachines) {
  ConnectionOptions options;
  options.credentials.token = "secret";
  EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open("example.org:1", options).status()));
  EXPECT_TRUE(Connection::Open("127.0.0.1:1", options).ok());
  options.credentials.tls = true;
  EXPECT_TRUE(Connection::Open("example.org:1", options).ok());
}

TEST(ConnectionTest, WhatMayPassIsRepeated) {
  int attempts = 0;
  const Status status = Nowhere()->Call(10s, [&](grpc::ClientContext&) {
    return ++attempts < 4 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "away") : grpc::Status::OK;
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(attempts, 4);
}

TEST(ConnectionTest, OtherErrorsAreFinalAndKeepTheirDetails) {
  int attempts = 0;
  const Status status = Nowhere()->Call(10s, [&](grpc::ClientContext&) {
    ++attempts;
    return convert::ToGrpc(convert::WithDetails(base::NotFound("none"), {.reason = "JOB"}));
  });
  EXPECT_EQ(attempts, 1);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(base::Message(status), "127.0.0.1:1: none");
  EXPECT_EQ(convert::DetailsOf(status).reason, "JOB");
}

TEST(ConnectionTest, RepetitionEndsWithTheTimeOfTheCall) {
  int attempts = 0;
  const Status status = Nowhere()->Call(20ms, [&](grpc::ClientContext&) {
    ++attempts;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "away");
  });
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_GE(attempts, 2);
}

TEST(ConnectionTest, AnAttemptForWhichNoTimeWasLeftDoesNotHideWhyTheOthersFailed) {
  int attempts = 0;
  const Status status = Nowhere()->Call(10s, [&](grpc::ClientContext&) {
    return ++attempts < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "away")
                          : grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "late");
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(base::Message(status), "127.0.0.1:1: away");
  EXPECT_EQ(attempts, 3);
}

TEST(ConnectionTest, AServerThatIsBusySaysWhen) {
  int attempts = 0;
  const auto busy = convert::WithDetails(base::ResourceExhausted("busy"), {.retry_after = 1h});
  const Status status = Nowhere()->Call(10s, [&](grpc::ClientContext&) {
    ++attempts;
    return convert::ToGrpc(busy);
  });
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(attempts, 1) << "an hour is beyond the call's time";
}

TEST(ConnectionTest, StoppingEndsTheRepetition) {
  std::stop_source stop;
  const Status status = Nowhere()->Call(
      1h,
      [&](grpc::ClientContext&) {
        stop.request_stop();
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "away");
      },
      stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(status));
}

// Where the attempts of a call go: the answers of `serve`, until one is OK.
std::vector<int> Visited(const Connection& connection,
                         const std::function<Status(int endpoint)>& serve) {
  std::map<const grpc::Channel*, int> numbers;
  std::vector<int> visited;
  const Status status = connection.Call(10s, [&](grpc::ClientContext&) {
    const auto* channel = connection.channel().get();
    visited.push_back(numbers.emplace(channel, int(numbers.size())).first->second);
    return convert::ToGrpc(serve(visited.back()));
  });
  EXPECT_TRUE(status.ok()) << status;
  return visited;
}

TEST(ConnectionTest, OfSeveralEndpointsTheOneThatServesIsFoundAndKept) {
  const auto connection = Nowhere("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
  const auto third = [](int endpoint) {
    return endpoint == 2 ? OkStatus() : base::Unavailable("away");
  };
  EXPECT_THAT(Visited(*connection, third), ElementsAre(0, 1, 2));
  // Numbered from 0 by each call: it is the same one again.
  EXPECT_THAT(Visited(*connection, [](int) { return OkStatus(); }), ElementsAre(0));
  EXPECT_EQ(connection->endpoint(), "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
}

TEST(ConnectionTest, AStandbyNamesTheLeader) {
  const auto connection = Nowhere("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
  const auto* leader = connection->channel().get();
  int attempts = 0;
  // Away from the first one; the second one says that the first one leads after all.
  const auto visited = Visited(*connection, [&](int) {
    ++attempts;
    if (attempts == 1) return base::Unavailable("away");
    if (attempts == 2) {
      return convert::WithDetails(
          base::Unavailable("standby"),
          {.reason = kNotLeader, .metadata = {{kLeaderKey, "127.0.0.1:1"}}});
    }
    return OkStatus();
  });
  EXPECT_THAT(visited, ElementsAre(0, 1, 0));
  EXPECT_EQ(connection->channel().get(), leader);
  // Nobody is asked who was not listed.
  attempts = 0;
  const auto foreign = Visited(*connection, [&](int) {
    if (++attempts > 1) return OkStatus();
    return convert::WithDetails(base::Unavailable("standby"),
                                {.reason = kNotLeader, .metadata = {{kLeaderKey, "127.0.0.1:9"}}});
  });
  EXPECT_THAT(foreign, ElementsAre(0, 1));
}

TEST(ConnectionTest, AnEndpointThatDoesNotAnswerIsLeftBeforeTheCallIsOver) {
  const auto connection = Nowhere("127.0.0.1:1,127.0.0.1:2");
  const auto* silent = connection->channel().get();
  int attempts = 0;
  const Status status = connection->Call(2s, [&](grpc::ClientContext& context) {
    if (connection->channel().get() != silent) return grpc::Status::OK;
    ++attempts;
    std::this_thread::sleep_until(context.deadline());
    return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "silent");
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts, 1);
}

TEST(ConnectionTest, EachOfSeveralAddressesIsChecked) {
  for (const char* bad :
       {"host:1,", ",host:1", "host:1,,host:2", "host:1,host", "host:1, host:2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open(bad).status())) << bad;
  }
  ConnectionOptions options;
  options.credentials.token = "secret";
  EXPECT_TRUE(
      absl::IsInvalidArgument(Connection::Open("127.0.0.1:1,example.org:1", options).status()));
  std::string many = "host:1";
  for (int k = 0; k < 16; ++k) many += ",host:1";
  EXPECT_TRUE(absl::IsInvalidArgument(Connection::Open(many).status()));
}

TEST(ConnectionTest, RequestIdsAreIds) {
  EXPECT_EQ(NewRequestId().size(), 32u);
  EXPECT_NE(NewRequestId(), NewRequestId());
}

}  // namespace
}  // namespace tenon::rpc
