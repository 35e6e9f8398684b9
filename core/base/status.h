// Errors of the world (bad input, full disk): absl::Status with messages built by fmt.
//
// Abseil 20220623 has no status macros, and its string_view is not std::string_view, so the
// constructors here take std::string and everything else in Tenon uses std types.
//
// Codes and the exit code of the command line they lead to: InvalidArgument and DataLoss: bad
// input (3); NotFound: bad input (3); FailedPrecondition: the answer is no (1); Unavailable: the
// service is unreachable (4); Internal: 5; ResourceExhausted: bad input (3), the limit is named.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tenon {

using absl::OkStatus;
using absl::Status;
using absl::StatusOr;

}  // namespace tenon

namespace tenon::base {

Status InvalidArgument(const std::string& message);
Status DataLoss(const std::string& message);
Status NotFound(const std::string& message);
Status FailedPrecondition(const std::string& message);
Status ResourceExhausted(const std::string& message);
Status Unavailable(const std::string& message);
Status Internal(const std::string& message);

// `status` with "context: " in front of its message; OK stays OK.
Status Annotate(const Status& status, std::string_view context);

// The message as a std::string.
std::string Message(const Status& status);

}  // namespace tenon::base

#define TENON_CONCAT_INNER(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr` is an error.
#define RETURN_IF_ERROR(expr)                             \
  do {                                                    \
    if (auto tenon_status = (expr); !tenon_status.ok()) { \
      return tenon_status;                                \
    }                                                     \
  } while (false)

// `ASSIGN_OR_RETURN(auto x, F());`: x = the value of F(), or return its error.
#define ASSIGN_OR_RETURN(lhs, expr) \
  TENON_ASSIGN_OR_RETURN_INNER(TENON_CONCAT(tenon_or_, __LINE__), lhs, expr)
#define TENON_ASSIGN_OR_RETURN_INNER(temp, lhs, expr) \
  auto temp = (expr);                                 \
  if (!temp.ok()) return temp.status();               \
  lhs = *std::move(temp)
