#include "core/base/status.h"

#include <fmt/core.h>

namespace tenon::base {

Status InvalidArgument(const std::string& message) { return absl::InvalidArgumentError(message); }
Status DataLoss(const std::string& message) { return absl::DataLossError(message); }
Status NotFound(const std::string& message) { return absl::NotFoundError(message); }
Status FailedPrecondition(const std::string& message) {
  return absl::FailedPreconditionError(message);
}
Status ResourceExhausted(const std::string& message) {
  return absl::ResourceExhaustedError(message);
}
Status Unavailable(const std::string& message) { return absl::UnavailableError(message); }
Status Internal(const std::string& message) { return absl::InternalError(message); }

std::string Message(const Status& status) {
  return {status.message().data(), status.message().size()};
}

Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}", context, Message(status))};
}

}  // namespace tenon::base
