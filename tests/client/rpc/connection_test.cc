// Connections: addresses, credentials, and repetition with an attempt of the test's own.
#include "client/rpc/connection.h"

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include "proto/convert/status.h"

namespace tenon::rpc {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<Connection> Nowhere() {
  ConnectionOptions options;
  options.backoff = {.initial = 1ms, .factor = 2, .max = 4ms};
  return *Connection::Open("127.0.0.1:1", options);
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

TEST(ConnectionTest, RequestIdsAreIds) {
  EXPECT_EQ(NewRequestId().size(), 32u);
  EXPECT_NE(NewRequestId(), NewRequestId());
}

}  // namespace
}  // namespace tenon::rpc
