// What a hostile or broken caller may send to an optimizer: each is refused by a name, holds
// nothing, and is noticed by nobody else. A real server in this process, with real children.
#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_context.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <thread>

#include "client/registry/sha256.h"
#include "core/base/crc32c.h"
#include "optimizer/explain/report.h"
#include "optimizer/service/service.h"
#include "proto/convert/status.h"
#include "tenon/v1/optimize.grpc.pb.h"
#include "tests/support/process.h"

namespace tenon::optimizer {
namespace {

using namespace std::chrono_literals;
using Stream = grpc::ClientReaderWriter<v1::OptimizeRequest, v1::OptimizeResponse>;

// An ONNX model of a few bytes.
std::string GoodModel() {
  return testing::ReadFile(TENON_SOURCE_DIR
                           "/tests/models/known_bugs/add_zero_broadcasts/model.onnx");
}

class WireTest : public ::testing::Test {
 protected:
  WireTest() : packs_({}) {}
  void Start(std::chrono::milliseconds transfer_limit = 60s) {
    NodeOptions node{.directory = folder_ / "data",
                     .limits = {.running = 1, .waiting = 2, .per_caller = 2},
                     .model_bytes_max = 1 << 20,
                     .child_command = {testing::Binary("tenon"), "internal-optimizer"},
                     .code_version = "test"};
    auto opened = Node::Open(node, packs_);
    ASSERT_TRUE(opened.ok()) << base::Message(opened.status());
    node_ = *std::move(opened);
    auto server =
        Server::Start({.node = node,
                       .transfer_limit = transfer_limit,
                       .on_call = [this](const EndedCall& call) { last_ = call.outcome; }},
                      *node_);
    ASSERT_TRUE(server.ok()) << base::Message(server.status());
    server_ = *std::move(server);
    stub_ = v1::OptimizeService::NewStub(grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(server_->port()), grpc::InsecureChannelCredentials()));
  }
  ~WireTest() override { server_.reset(); }

  static v1::OptimizeRequest Options(const std::string& model) {
    v1::OptimizeRequest message;
    message.mutable_options()->set_request_id("r1");
    message.mutable_options()->set_model_bytes(model.size());
    message.mutable_options()->set_model_sha256(registry::ToHex(registry::Sha256(model)));
    return message;
  }
  static v1::OptimizeRequest Chunk(std::uint64_t offset, const std::string& data) {
    v1::OptimizeRequest message;
    message.mutable_chunk()->set_offset(offset);
    message.mutable_chunk()->set_data(data);
    message.mutable_chunk()->set_crc32c(base::Crc32c(data));
    return message;
  }
  // Sends all, and returns how the call ended.
  Status Call(const std::vector<v1::OptimizeRequest>& messages, bool done = true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 60s);
    const std::unique_ptr<Stream> stream = stub_->Optimize(&context);
    for (const auto& message : messages) stream->Write(message);
    if (done) stream->WritesDone();
    v1::OptimizeResponse answer;
    answers_.clear();
    while (stream->Read(&answer)) answers_.push_back(answer);
    return convert::FromGrpc(stream->Finish());
  }
  // A caller who is cut off hears of it before the server has put everything away.
  void ExpectNothingIsHeld() {
    const auto held = [&] {
      const NodeFigures f = node_->figures();
      return f.running + f.waiting;
    };
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (held() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
    EXPECT_EQ(held(), 0U);
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "data/work"));
  }
  std::string FieldOf(const Status& status) {
    const auto details = convert::DetailsOf(status);
    return details.violations.empty() ? base::Message(status) : details.violations[0].field;
  }

  testing::TempFolder folder_;
  PackSource packs_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::OptimizeService::Stub> stub_;
  std::vector<v1::OptimizeResponse> answers_;
  std::atomic<CallOutcome> last_{CallOutcome::kDone};
};

TEST_F(WireTest, AModelInAnyChunksIsOptimized) {
  Start();
  const std::string model = GoodModel();
  std::vector<v1::OptimizeRequest> messages{Options(model)};
  for (std::size_t at = 0; at < model.size(); at += 100) {
    messages.push_back(Chunk(at, model.substr(at, 100)));
  }
  const Status status = Call(messages);
  ASSERT_TRUE(status.ok()) << base::Message(status);
  std::string result;
  for (const auto& answer : answers_) result += answer.chunk().data();
  const auto announced =
      std::ranges::find_if(answers_, [](const auto& a) { return a.has_result(); });
  ASSERT_NE(announced, answers_.end());
  EXPECT_EQ(announced->result().model_bytes(), result.size());
  EXPECT_EQ(announced->result().model_sha256(), registry::ToHex(registry::Sha256(result)));
  EXPECT_TRUE(answers_.back().has_report_json());
  EXPECT_EQ(last_, CallOutcome::kDone);
  ASSERT_TRUE(Call(messages).ok());
  EXPECT_EQ(last_, CallOutcome::kCached);
  ExpectNothingIsHeld();
}

TEST_F(WireTest, BytesThatDoNotFitAreNamed) {
  Start();
  const std::string model = GoodModel();
  const auto options = Options(model);
  auto wrong_crc = Chunk(0, model);
  wrong_crc.mutable_chunk()->set_crc32c(1);
  auto large = Options(model);
  large.mutable_options()->set_model_bytes((1 << 20) + 1);
  auto slow = options;
  slow.mutable_options()->set_time_limit_ms(700'000);
  const struct {
    std::vector<v1::OptimizeRequest> messages;
    absl::StatusCode code;
    std::string field;
  } cases[] = {
      {{}, absl::StatusCode::kInvalidArgument, "options"},
      {{v1::OptimizeRequest()}, absl::StatusCode::kInvalidArgument, "options"},
      {{Chunk(0, model)}, absl::StatusCode::kInvalidArgument, "options"},
      {{options, options}, absl::StatusCode::kInvalidArgument, "chunk"},
      {{options, Chunk(1, model)}, absl::StatusCode::kInvalidArgument, "chunk.offset"},
      {{options, Chunk(0, "")}, absl::StatusCode::kInvalidArgument, "chunk.data"},
      {{options, wrong_crc}, absl::StatusCode::kInvalidArgument, "chunk.crc32c"},
      {{options, Chunk(0, model.substr(1))}, absl::StatusCode::kInvalidArgument, "chunk"},
      {{options, Chunk(0, model + "x")}, absl::StatusCode::kInvalidArgument, "chunk.data"},
      {{options, Chunk(0, std::string(model.size(), 'x'))}, absl::StatusCode::kDataLoss, ""},
      {{large}, absl::StatusCode::kResourceExhausted, ""},
      {{slow}, absl::StatusCode::kInvalidArgument, "options.time_limit_ms"},
      {{Options("nonsense"), Chunk(0, "nonsense")}, absl::StatusCode::kDataLoss, ""},
  };
  for (const auto& wrong : cases) {
    const Status status = Call(wrong.messages);
    EXPECT_EQ(status.code(), wrong.code) << wrong.field << ": " << base::Message(status);
    if (!wrong.field.empty()) {
      EXPECT_EQ(FieldOf(status), wrong.field);
    }
    EXPECT_EQ(last_, CallOutcome::kInvalid) << wrong.field;
    ExpectNothingIsHeld();
  }
  EXPECT_EQ(node_->figures().children_died, 0U);
}

TEST_F(WireTest, WhoStopsSendingIsCutOff) {
  Start(300ms);
  const std::string model = GoodModel();
  EXPECT_TRUE(absl::IsCancelled(Call({Options(model), Chunk(0, model.substr(0, 10))}, false)));
  ExpectNothingIsHeld();
}

// A report is larger than a message may be: it comes in parts, and no character is cut.
TEST_F(WireTest, ALongReportComesInPartsAndWhoDoesNotReadItIsCutOff) {
  Start(2s);
  const testing::RunResult made = testing::Run(
      {"/usr/bin/python3", TENON_SOURCE_DIR "/tests/e2e/long_model.py", folder_ / "long", "6000"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string model = testing::ReadFile(folder_ / "long");
  auto options = Options(model);
  options.mutable_options()->set_time_limit_ms(1);
  ASSERT_TRUE(Call({options, Chunk(0, model)}).ok());
  std::string report;
  std::uint64_t announced = 0;
  for (const auto& answer : answers_) {
    EXPECT_LE(answer.report_json().size(), 1U << 20);
    report += answer.report_json();
    if (answer.has_result()) announced = answer.result().report_bytes();
  }
  EXPECT_GT(report.size(), 1U << 20);
  EXPECT_EQ(report.size(), announced);
  EXPECT_TRUE(ParseReport(report, "report").ok());

  // Little is on its way to who does not read.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  const auto lazy = v1::OptimizeService::NewStub(
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server_->port()),
                                grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  const auto stream = lazy->Optimize(&context);
  stream->Write(options);
  stream->Write(Chunk(0, model));
  stream->WritesDone();
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (last_ != CallOutcome::kCancelled && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(last_, CallOutcome::kCancelled);
  ExpectNothingIsHeld();
  context.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(WireTest, CallersWhoOnlySitThereHaveTheirShareAndNoMore) {
  Start();
  grpc::ClientContext first, second;
  const auto a = stub_->Optimize(&first), b = stub_->Optimize(&second);
  a->Write(Options(GoodModel()));
  b->Write(Options(GoodModel()));
  while (node_->figures().waiting < 2) std::this_thread::sleep_for(5ms);
  const Status status = Call({Options(GoodModel())});
  EXPECT_EQ(convert::DetailsOf(status).reason, "QUOTA");
  EXPECT_TRUE(convert::IsRetriable(status));
  first.TryCancel();
  second.TryCancel();
  EXPECT_FALSE(a->Finish().ok());
  EXPECT_FALSE(b->Finish().ok());
  ExpectNothingIsHeld();
}

TEST_F(WireTest, AFullDiskIsNotTheCallersFault) {
  Start();
  // To a process, a file that may not grow is as good as a disk that is full.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const Status status = Call({Options(GoodModel()), Chunk(0, GoodModel())});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(convert::DetailsOf(status).reason, "DISK_FULL") << base::Message(status);
  EXPECT_TRUE(convert::IsRetriable(status));
  EXPECT_EQ(last_, CallOutcome::kRefused);
  ExpectNothingIsHeld();
}

TEST_F(WireTest, ADrainingServerSaysSo) {
  Start();
  node_->Drain();
  const Status status = Call({Options(GoodModel())});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(convert::DetailsOf(status).reason, "DRAINING");
  EXPECT_FALSE(node_->figures().ready);
}

}  // namespace
}  // namespace tenon::optimizer
