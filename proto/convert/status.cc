#include "proto/convert/status.h"

#include <algorithm>

#include <fmt/core.h>
#include <grpcpp/support/status.h>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tenon::convert {
namespace {

constexpr std::size_t kMessageMax = 4096;
constexpr char kUrlPrefix[] = "type.googleapis.com/";
constexpr char kDomain[] = "tenon";

template <class Message>
std::string UrlOf() {
  return kUrlPrefix + Message::descriptor()->full_name();
}

template <class Message>
std::optional<Message> Payload(const Status& status) {
  const auto bytes = status.GetPayload(UrlOf<Message>());
  Message out;
  if (!bytes || !out.ParseFromString(std::string(*bytes))) return std::nullopt;
  return out;
}

template <class Message>
void SetPayload(Status& status, const Message& message) {
  status.SetPayload(UrlOf<Message>(), absl::Cord(message.SerializeAsString()));
}

}  // namespace

Status WithDetails(const Status& status, const ErrorDetails& details) {
  Status out(status.code(), status.message());
  if (!details.reason.empty() || !details.metadata.empty()) {
    google::rpc::ErrorInfo info;
    info.set_reason(details.reason);
    info.set_domain(kDomain);
    for (const auto& [name, value] : details.metadata) (*info.mutable_metadata())[name] = value;
    SetPayload(out, info);
  }
  if (details.retry_after) {
    google::rpc::RetryInfo retry;
    const auto ms = details.retry_after->count();
    retry.mutable_retry_delay()->set_seconds(ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<std::int32_t>(ms % 1000) * 1'000'000);
    SetPayload(out, retry);
  }
  if (!details.violations.empty()) {
    google::rpc::BadRequest bad;
    for (const Violation& v : details.violations) {
      auto& to = *bad.add_field_violations();
      to.set_field(v.field);
      to.set_description(v.description);
    }
    SetPayload(out, bad);
  }
  return out;
}

ErrorDetails DetailsOf(const Status& status) {
  ErrorDetails out;
  if (const auto info = Payload<google::rpc::ErrorInfo>(status)) {
    out.reason = info->reason();
    out.metadata.insert(info->metadata().begin(), info->metadata().end());
  }
  if (const auto retry = Payload<google::rpc::RetryInfo>(status)) {
    // Foreign numbers: a day is as good as for ever.
    constexpr std::int64_t kSecondsMax = 86'400;
    const std::int64_t seconds =
        std::min(std::max<std::int64_t>(retry->retry_delay().seconds(), 0), kSecondsMax);
    out.retry_after = std::chrono::milliseconds(
        seconds * 1000 + std::max(retry->retry_delay().nanos(), 0) / 1'000'000);
  }
  if (const auto bad = Payload<google::rpc::BadRequest>(status)) {
    for (const auto& v : bad->field_violations()) {
      out.violations.push_back({v.field(), v.description()});
    }
  }
  return out;
}

Status Violations(const std::vector<Violation>& violations) {
  if (violations.empty()) return OkStatus();
  std::string message;
  for (const Violation& v : violations) {
    message += fmt::format("{}{}: {}", message.empty() ? "" : "; ", v.field, v.description);
  }
  return WithDetails(base::InvalidArgument(message), {.reason = "BAD_REQUEST",
                                                      .metadata = {{"field", violations[0].field}},
                                                      .violations = violations});
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message = base::Message(status);
  if (message.size() > kMessageMax) message = message.substr(0, kMessageMax - 3) + "...";
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& bytes) {
    auto& any = *details.add_details();
    any.set_type_url(std::string(url));
    any.set_value(std::string(bytes));
  });
  return {static_cast<grpc::StatusCode>(status.code()), message,
          details.details().empty() ? std::string() : details.SerializeAsString()};
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  Status out(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return out;
  for (const auto& any : details.details()) {
    out.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
  return out;
}

bool IsRetriable(const Status& status) {
  if (absl::IsUnavailable(status)) return true;
  return absl::IsResourceExhausted(status) && DetailsOf(status).retry_after.has_value();
}

}  // namespace tenon::convert
