#include "client/rpc/job_client.h"

#include <optional>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "tenon/v1/jobs.grpc.pb.h"

namespace tenon::rpc {
namespace {

using Stub = v1::JobService::Stub;

// The coordinator estimates one job after another first.
constexpr Milliseconds kSubmitCall{60'000};

Stub StubOf(const Connection& connection) { return Stub(connection.channel()); }

}  // namespace

JobClient::JobClient(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

StatusOr<convert::Job> JobClient::Submit(const convert::JobSpec& spec,
                                         std::string request_id) const {
  if (request_id.empty()) request_id = NewRequestId();
  return Submit(convert::SubmitJob{.request_id = std::move(request_id), .spec = spec});
}

StatusOr<convert::Job> JobClient::Judge(const convert::JobSpec& spec) const {
  return Submit(convert::SubmitJob{.request_id = NewRequestId(), .spec = spec, .dry_run = true});
}

StatusOr<convert::Job> JobClient::Submit(const convert::SubmitJob& submission) const {
  v1::SubmitJobRequest request;
  request.set_request_id(submission.request_id);
  request.set_dry_run(submission.dry_run);
  convert::ToMessage(submission.spec, *request.mutable_spec());
  v1::Job answer;
  RETURN_IF_ERROR(connection_->Call(kSubmitCall, [&](grpc::ClientContext& context) {
    return StubOf(*connection_).SubmitJob(&context, request, &answer);
  }));
  return convert::FromMessage(answer);
}

StatusOr<convert::Job> JobClient::Get(const std::string& id) const {
  v1::GetJobRequest request;
  request.set_id(id);
  v1::Job answer;
  RETURN_IF_ERROR(connection_->Call(kQuickCall, [&](grpc::ClientContext& context) {
    return StubOf(*connection_).GetJob(&context, request, &answer);
  }));
  return convert::FromMessage(answer);
}

StatusOr<JobClient::Page> JobClient::List(const convert::ListJobs& list) const {
  v1::ListJobsRequest request;
  request.set_page_size(list.page_size);
  request.set_page_token(list.page_token);
  for (const convert::JobState s : list.states) request.add_states(static_cast<v1::JobState>(s));
  v1::ListJobsResponse answer;
  RETURN_IF_ERROR(connection_->Call(kQuickCall, [&](grpc::ClientContext& context) {
    return StubOf(*connection_).ListJobs(&context, request, &answer);
  }));
  Page page;
  for (const v1::Job& job : answer.jobs()) {
    ASSIGN_OR_RETURN(convert::Job value, convert::FromMessage(job));
    page.jobs.push_back(std::move(value));
  }
  page.next_page_token = answer.next_page_token();
  return page;
}

StatusOr<convert::Job> JobClient::Control(const convert::ControlJob& control) const {
  v1::ControlJobRequest request;
  request.set_id(control.id);
  request.set_action(static_cast<v1::ControlJobRequest::Action>(control.action));
  request.set_priority(control.priority);
  v1::Job answer;
  RETURN_IF_ERROR(connection_->Call(kQuickCall, [&](grpc::ClientContext& context) {
    return StubOf(*connection_).ControlJob(&context, request, &answer);
  }));
  return convert::FromMessage(answer);
}

StatusOr<convert::Job> JobClient::Watch(const std::string& id,
                                        const std::function<bool(const convert::Job&)>& visit,
                                        std::stop_token stop, Milliseconds patience) const {
  v1::WatchJobRequest request;
  request.set_id(id);
  std::optional<convert::Job> last;
  std::optional<Status> foreign;  // An answer that cannot be read.
  while (true) {
    bool heard = false, enough = false;
    const Status status = connection_->Call(
        patience,
        [&](grpc::ClientContext& context) {
          const auto stream = StubOf(*connection_).WatchJob(&context, request);
          v1::Job message;
          while (!enough && !foreign && stream->Read(&message)) {
            heard = true;
            auto job = convert::FromMessage(message);
            if (!job.ok()) {
              foreign = job.status();
            } else {
              last = *std::move(job);
              enough = !visit(*last) || convert::HasEnded(last->state);
            }
          }
          if (enough || foreign) context.TryCancel();
          const grpc::Status end = stream->Finish();
          // A stream that spoke and broke is opened again, with patience anew.
          return heard ? grpc::Status::OK : end;
        },
        stop);
    if (foreign) return *foreign;
    if (enough || (stop.stop_requested() && last)) return *last;
    RETURN_IF_ERROR(status);
    if (!heard) return base::Unavailable(connection_->endpoint() + ": the watch ended unheard");
  }
}

}  // namespace tenon::rpc
