// JobClient: jobs of a coordinator, for people and CI.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "client/rpc/connection.h"
#include "proto/convert/jobs.h"

namespace tenon::rpc {

// Calls repeat themselves while the coordinator cannot be reached, within kQuickCall; then
// UNAVAILABLE or DEADLINE_EXCEEDED. Other errors: jobs.proto. Thread-safe.
class JobClient {
 public:
  explicit JobClient(std::shared_ptr<Connection> connection);

  // An empty request id: a fresh one.
  StatusOr<convert::Job> Submit(const convert::JobSpec& spec, std::string request_id = "") const;
  // Makes no job; what comes back has an estimate and no id. Errors as Submit.
  StatusOr<convert::Job> Judge(const convert::JobSpec& spec) const;
  StatusOr<convert::Job> Get(const std::string& id) const;
  struct Page {
    std::vector<convert::Job> jobs;  // Newest first.
    std::string next_page_token;     // Empty: that was all.
  };
  StatusOr<Page> List(const convert::ListJobs& request) const;
  StatusOr<convert::Job> Control(const convert::ControlJob& request) const;

  // Calls `visit` with the job now and after changes until it has ended, `visit` returns false or
  // `stop` is requested; then returns the last state. A broken stream is opened again for as long
  // as `patience`.
  StatusOr<convert::Job> Watch(const std::string& id,
                               const std::function<bool(const convert::Job&)>& visit,
                               std::stop_token stop = {},
                               Milliseconds patience = std::chrono::minutes(5)) const;

 private:
  StatusOr<convert::Job> Submit(const convert::SubmitJob& submission) const;

  std::shared_ptr<Connection> connection_;
};

}  // namespace tenon::rpc
