// Callers that send or read as slowly as they can: they hold no place and no thread for ever.
#include <future>
#include <thread>

#include "core/base/crc32c.h"
#include "tenon/v1/registry.grpc.pb.h"
#include "tenon/v1/store.grpc.pb.h"
#include "tests/faults/callers.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
using grpc::StatusCode;
using std::chrono::steady_clock;
using testing::ProcessFigures;
using testing::RunResult;

using SlowCallerTest = ClusterOfOthers;

TEST_F(SlowCallerTest, WhoSendsAByteNowAndThenHoldsNoPlaceForEver) {
  e2e::ClusterOptions options{.stores = 1, .workers = 1, .verifiers = 1};
  options.of_all = {};
  Start(options);
  for (std::size_t k = 0; k < 2; ++k) {  // The coordinator and the store.
    e2e::Service& service = *cluster_->services()[k];
    service.Kill();
    service.arguments().insert(service.arguments().end(), {"--transfer-limit-s", "5"});
    service.Start();
    service.Port();
  }
  const std::string pack = cluster_->folder() / "small.pack";
  ASSERT_EQ(cluster_
                ->Tenon({"generate", "--universe", "matrix", "--max-operators", "1", "--out", pack,
                         "--name", "small@1.0.0"})
                .exit_code,
            0);
  const auto drip = [](auto& stream, auto& message) {
    // Three times the limit. A server that has not cut it off says then that bytes are missing.
    for (std::uint64_t at = 0; at < 75; ++at) {
      v1::Chunk& chunk = *message.mutable_chunk();
      chunk.set_offset(at);
      chunk.set_data("x");
      chunk.set_crc32c(base::Crc32c("x"));
      if (!stream->Write(message)) return;
      std::this_thread::sleep_for(200ms);
    }
    stream->WritesDone();
  };
  const int threads_before = Store().threads;
  std::vector<std::jthread> hostile;
  std::vector<std::future<grpc::Status>> ends;
  // All places for transfers of the registry.
  for (int k = 0; k < 8; ++k) {
    std::packaged_task<grpc::Status()> push([&] {
      const auto stub = v1::RegistryService::NewStub(ChannelTo(cluster_->server()));
      grpc::ClientContext context;
      v1::PackInfo answer;
      const auto stream = stub->PushPack(&context, &answer);
      v1::PushPackRequest message;
      message.mutable_header()->set_size(kMiB);
      stream->Write(message);
      drip(stream, message);
      return stream->Finish();
    });
    ends.push_back(push.get_future());
    hostile.emplace_back(std::move(push));
  }
  // Threads of the store.
  for (int k = 0; k < 40; ++k) {
    std::packaged_task<grpc::Status()> put([&] {
      const auto stub = v1::StoreService::NewStub(ChannelTo(store_));
      grpc::ClientContext context;
      v1::PutArtifactResponse answer;
      const auto stream = stub->PutArtifact(&context, &answer);
      v1::PutArtifactRequest message;
      message.mutable_header()->set_table(77);
      message.mutable_header()->set_name("slow");
      message.mutable_header()->set_size(kMiB);
      message.mutable_header()->set_sha256(std::string(64, '0'));
      stream->Write(message);
      drip(stream, message);
      return stream->Finish();
    });
    ends.push_back(put.get_future());
    hostile.emplace_back(std::move(put));
  }
  EXPECT_LE(Store().threads, threads_before + 256);
  // Who means well waits for a place and gets one.
  const RunResult push = cluster_->Ask({"pack", "push", pack});
  EXPECT_EQ(push.exit_code, 0) << push.err;
  for (auto& end : ends) {
    ASSERT_EQ(end.wait_for(100s), std::future_status::ready) << "a slow stream goes on for ever";
    EXPECT_EQ(end.get().error_code(), StatusCode::CANCELLED);
  }
  ExpectAllIsWell("1.0.0");
}

TEST_F(SlowCallerTest, WhoDoesNotReadWhatItAsksForHoldsNoThreadForEver) {
  e2e::ClusterOptions options{.stores = 1, .workers = 0, .verifiers = 0};
  Start(options);
  e2e::Service& service = *cluster_->services()[1];
  service.Kill();
  service.arguments().insert(service.arguments().end(), {"--transfer-limit-s", "5"});
  service.Start();
  service.Port();
  const std::string bytes(16 * kMiB, 'x');
  const std::string file = cluster_->folder().Write("bytes", bytes);
  const std::string sum = testing::Run({"sha256sum", file}).out.substr(0, 64);
  {
    const auto stub = v1::StoreService::NewStub(ChannelTo(store_));
    grpc::ClientContext context;
    v1::PutArtifactResponse answer;
    const auto stream = stub->PutArtifact(&context, &answer);
    v1::PutArtifactRequest message;
    message.mutable_header()->set_table(77);
    message.mutable_header()->set_name("large");
    message.mutable_header()->set_size(bytes.size());
    message.mutable_header()->set_sha256(sum);
    stream->Write(message);
    for (std::size_t at = 0; at < bytes.size(); at += kMiB) {
      v1::Chunk& chunk = *message.mutable_chunk();
      chunk.set_offset(at);
      chunk.set_data(bytes.substr(at, kMiB));
      chunk.set_crc32c(base::Crc32c(chunk.data()));
      ASSERT_TRUE(stream->Write(message));
    }
    stream->WritesDone();
    const grpc::Status s = stream->Finish();
    ASSERT_TRUE(s.ok()) << s.error_message();
  }
  const ProcessFigures before = Store();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::Chunk>>> streams;
  std::vector<std::unique_ptr<v1::StoreService::Stub>> stubs;
  v1::GetArtifactRequest request;
  request.set_table(77);
  request.set_name("large");
  v1::Chunk chunk;
  for (int k = 0; k < 60; ++k) {
    stubs.push_back(v1::StoreService::NewStub(ChannelTo(store_)));
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stubs.back()->GetArtifact(contexts.back().get(), request));
    ASSERT_TRUE(streams.back()->Read(&chunk)) << streams.back()->Finish().error_message();
  }
  // The limit is that of the transfer, and a second for each MiB.
  const auto end = steady_clock::now() + 200s;
  std::this_thread::sleep_for(1s);
  EXPECT_LE(Store().rss_bytes, before.rss_bytes + 512 * kMiB);
  EXPECT_LE(Store().threads, before.threads + 256);
  while (Store().threads > before.threads + 8 && steady_clock::now() < end) {
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_LE(Store().threads, before.threads + 8);
  int cut = 0;
  for (auto& stream : streams) {
    while (stream->Read(&chunk)) {
    }
    cut += stream->Finish().error_code() == StatusCode::CANCELLED;
  }
  EXPECT_GE(cut, 50);  // What the buffers on the way can hold may have come to its end.
  EXPECT_EQ(cluster_->Tenon({"store", "stats", "--server", store_}).exit_code, 0);
}

}  // namespace
}  // namespace tenon::faults
