// Errors on the wire: absl::Status in the program, grpc::Status between programs, with the details
// that common.proto promises. Details ride on absl::Status as payloads, so they survive any number
// of RETURN_IF_ERRORs; an error without details is as good.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace tenon::convert {

// What is wrong with one field of a request.
struct Violation {
  std::string field;  // The path: "spec.pack_name".
  std::string description;
  friend bool operator==(const Violation&, const Violation&) = default;
};

// What a program may want to know of an error. A value type.
struct ErrorDetails {
  std::string reason;                           // UPPER_SNAKE_CASE; empty: none.
  std::map<std::string, std::string> metadata;  // Names field, job, shard or pack.
  std::optional<std::chrono::milliseconds> retry_after;
  std::vector<Violation> violations;
  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

// `status` (an error) with these details in place of those it had.
Status WithDetails(const Status& status, const ErrorDetails& details);
// The details it carries; empty ones if none, or if they cannot be read.
ErrorDetails DetailsOf(const Status& status);

// InvalidArgument with all violations, in its message as well. OK when there are none.
Status Violations(const std::vector<Violation>& violations);

// To and from the wire; OK to OK. Codes are the same on both sides. A message is cut at 4 KiB,
// since it travels in a header.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

// Whether the same call may succeed later (common.proto): UNAVAILABLE, or RESOURCE_EXHAUSTED with
// a time after which to try.
bool IsRetriable(const Status& status);

}  // namespace tenon::convert
