// What tests of hostile callers share.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "tests/e2e/storm.h"
#include "tests/support/process_figures.h"

namespace tenon::faults {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

// A channel of its own, without limits and repetition.
inline std::shared_ptr<grpc::Channel> ChannelTo(const std::string& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
}

// Served while others are hostile.
class ClusterOfOthers : public ::testing::Test {
 protected:
  void Start(e2e::ClusterOptions options = {.stores = 1, .workers = 1, .verifiers = 1}) {
    cluster_ = std::make_unique<e2e::Cluster>(options);
    store_ =
        options.stores == 0 ? "" : "127.0.0.1:" + std::to_string(cluster_->services()[1]->Port());
  }
  testing::ProcessFigures Coordinator() {
    return testing::FiguresOf(cluster_->coordinator().pid());
  }
  testing::ProcessFigures Store() { return testing::FiguresOf(cluster_->services()[1]->pid()); }
  // Others are served, and nobody has died.
  void ExpectAllIsWell(const std::string& version) {
    const testing::RunResult job = e2e::Submit(*cluster_, "1", version);
    EXPECT_EQ(job.exit_code, 0) << job.out << job.err << cluster_->Logs();
    for (const auto& service : cluster_->services()) {
      EXPECT_TRUE(service->IsRunning()) << service->name() << cluster_->Logs();
    }
  }

  std::unique_ptr<e2e::Cluster> cluster_;
  std::string store_;
};

}  // namespace tenon::faults
