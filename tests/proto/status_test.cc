// Errors with their details, there and back.
#include "proto/convert/status.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

namespace tenon::convert {
namespace {

const ErrorDetails kAll{.reason = "PACK_EXISTS",
                        .metadata = {{"pack", "matrix@1.0.0"}, {"job", "j7"}},
                        .retry_after = std::chrono::milliseconds(1'234),
                        .violations = {{"spec.shards", "too many"}, {"spec.mode", "unknown"}}};

TEST(StatusTest, DetailsSurviveTheWire) {
  for (const auto code : {absl::StatusCode::kInvalidArgument, absl::StatusCode::kUnavailable,
                          absl::StatusCode::kDataLoss, absl::StatusCode::kUnauthenticated}) {
    const Status status = WithDetails(Status(code, "what is wrong"), kAll);
    const Status back = FromGrpc(ToGrpc(status));
    EXPECT_EQ(back.code(), code);
    EXPECT_EQ(base::Message(back), "what is wrong");
    EXPECT_EQ(DetailsOf(back), kAll);
  }
}

TEST(StatusTest, OkIsOkAndPlainErrorsStayPlain) {
  EXPECT_TRUE(ToGrpc(OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  const grpc::Status plain = ToGrpc(base::NotFound("nothing"));
  EXPECT_EQ(plain.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(plain.error_details().empty());
  EXPECT_EQ(DetailsOf(FromGrpc(plain)), ErrorDetails{});
}

TEST(StatusTest, ForeignDetailsAreNoTrouble) {
  const grpc::Status foreign(grpc::StatusCode::INTERNAL, "odd", "\xff\xfe not a message");
  const Status status = FromGrpc(foreign);
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(DetailsOf(status), ErrorDetails{});
}

TEST(StatusTest, LongMessagesAreCut) {
  const grpc::Status status = ToGrpc(base::Internal(std::string(100'000, 'x')));
  EXPECT_EQ(status.error_message().size(), 4096u);
}

TEST(StatusTest, OnlyWhatMayPassIsRetried) {
  EXPECT_TRUE(IsRetriable(base::Unavailable("away")));
  EXPECT_FALSE(IsRetriable(base::ResourceExhausted("too large")));
  EXPECT_TRUE(IsRetriable(
      WithDetails(base::ResourceExhausted("busy"), {.retry_after = std::chrono::milliseconds(5)})));
  EXPECT_FALSE(IsRetriable(base::Internal("broken")));
  EXPECT_FALSE(IsRetriable(OkStatus()));
}

TEST(StatusTest, AllViolationsAreTold) {
  EXPECT_TRUE(Violations({}).ok());
  const Status status = Violations(kAll.violations);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(DetailsOf(status).violations, kAll.violations);
  EXPECT_EQ(DetailsOf(status).metadata.at("field"), "spec.shards");
  EXPECT_EQ(base::Message(status), "spec.shards: too many; spec.mode: unknown");
}

}  // namespace
}  // namespace tenon::convert
