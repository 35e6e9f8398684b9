#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>

#include "client/observe/calls.h"
#include "client/observe/http.h"
#include "client/observe/metrics.h"

namespace tenon::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, WhatWasCountedIsShown) {
  Metrics metrics;
  metrics.OnTask("worker", "completed");
  metrics.OnTask("worker", "completed");
  metrics.OnVerdict("proved", true, 0.02);
  metrics.OnCall("tenon.v1.JobService/GetJob", "OK", 0.003);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("tenon_tasks_total{outcome=\"completed\",role=\"worker\"} 2"));
  EXPECT_THAT(text, HasSubstr("tenon_verdicts_total{repeatable=\"true\",verdict=\"proved\"} 1"));
  EXPECT_THAT(text, HasSubstr("tenon_proof_seconds_bucket{le=\"0.025\"} 1"));
  EXPECT_THAT(text, HasSubstr("tenon_rpc_seconds_count{code=\"OK\","
                              "method=\"tenon.v1.JobService/GetJob\"} 1"));
}

TEST(MetricsTest, SourcesAreAskedUntilForgotten) {
  Metrics metrics;
  int asked = 0;
  metrics.Ask("jobs", [&] {
    ++asked;
    return std::vector<Sample>{{"tenon_jobs", "Jobs", false, {{"state", "done"}}, 3.0},
                               {"tenon_graphs_total", "Graphs", true, {}, 7.0}};
  });
  EXPECT_THAT(metrics.Text(), HasSubstr("tenon_jobs{state=\"done\"} 3"));
  EXPECT_THAT(metrics.Text(), HasSubstr("# TYPE tenon_graphs_total counter"));
  metrics.Forget("jobs");
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("tenon_jobs")));
  EXPECT_EQ(asked, 2);
}

TEST(MetricsTest, CountersAreThereBeforeAnythingHappens) {
  Metrics metrics;
  metrics.SetBuild("verifier", "1.2.3");
  metrics.ExpectTasks("verifier", std::vector<std::string_view>{"completed", "lost"});
  metrics.ExpectVerdicts(std::vector<std::string_view>{"proved"});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("tenon_tasks_total{outcome=\"lost\",role=\"verifier\"} 0"));
  EXPECT_THAT(text, HasSubstr("tenon_verdicts_total{repeatable=\"false\",verdict=\"proved\"} 0"));
  EXPECT_THAT(text, HasSubstr("tenon_proof_seconds_count 0"));
  EXPECT_THAT(text, HasSubstr("tenon_build_info{role=\"verifier\",version=\"1.2.3\"} 1"));
}

double ValueOf(const std::string& name) {
  for (const Sample& sample : ProcessSamples()) {
    if (sample.name == name) return sample.value;
  }
  ADD_FAILURE() << name << " is missing";
  return -1;
}

TEST(MetricsTest, TheProcessTellsWhatItUses) {
  // What is opened and taken shows.
  const double files = ValueOf("process_open_fds"),
               memory = ValueOf("process_resident_memory_bytes");
  EXPECT_GE(files, 3);
  EXPECT_GE(ValueOf("process_max_fds"), files);
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  EXPECT_EQ(ValueOf("process_open_fds"), files + 2);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  std::vector<char> block(std::size_t{64} << 20, 'x');
  EXPECT_GE(ValueOf("process_resident_memory_bytes"), memory + 32e6) << block.back();
  EXPECT_GE(ValueOf("process_threads"), 1);
  EXPECT_GT(ValueOf("process_cpu_seconds_total"), -1);
  const double now = double(std::time(nullptr));
  EXPECT_NEAR(ValueOf("process_start_time_seconds"), now, 1000);
}

TEST(HttpServerTest, BadAndTakenAddressesAreRefused) {
  const auto answer = [](const std::string&) { return Response{}; };
  for (const char* listen : {"", "7480", ":1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:0,0"}) {
    EXPECT_EQ(HttpServer::Start(listen, answer).status().code(), absl::StatusCode::kInvalidArgument)
        << listen;
  }
  const auto server = HttpServer::Start("127.0.0.1:0", answer);
  ASSERT_TRUE(server.ok());
  ASSERT_GT((*server)->port(), 0);
  EXPECT_EQ(
      HttpServer::Start("127.0.0.1:" + std::to_string((*server)->port()), answer).status().code(),
      absl::StatusCode::kUnavailable);
}

// What a unary call with an empty request answers.
grpc::Status Call(grpc::GenericStub& stub, const std::string& method, std::string& answer) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::vector<grpc::Slice> slices;
  if (status.ok()) response.Dump(&slices);
  for (const grpc::Slice& slice : slices) {
    answer.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return status;
}

TEST(CallsTest, ServersHaveHealthAndTheirCallsAreSeen) {
  EnableHealthAndReflection();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  std::vector<std::string> seen;
  ObserveCalls(builder, [&](std::string_view method, std::string_view code, double seconds) {
    EXPECT_GE(seconds, 0);
    seen.push_back(std::string(method) + " " + std::string(code));
  });
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  grpc::GenericStub stub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  std::string answer;
  const grpc::Status health = Call(stub, "/grpc.health.v1.Health/Check", answer);
  ASSERT_TRUE(health.ok()) << health.error_message();
  EXPECT_EQ(answer, "\x08\x01");  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(Call(stub, "/tenon.v1.JobService/GetJob", answer).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  server->Shutdown();
  server->Wait();
}

}  // namespace
}  // namespace tenon::observe
