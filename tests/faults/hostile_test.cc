// Callers that are broken or mean ill, against real processes: they are turned away in words, hold
// nothing for ever, and others do not notice.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "client/rpc/server_limits.h"
#include "tenon/v1/jobs.pb.h"
#include "tenon/v1/registry.pb.h"
#include "tenon/v1/work.pb.h"
#include "tests/faults/callers.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
using e2e::Cluster;
using grpc::StatusCode;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using testing::ProcessFigures;
using testing::RunResult;

// A call of one message that need not be one of the protocol.
grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::string& bytes, const std::string& authorization = "") {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + 60s);
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer answer;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, {}, &request, &answer,
                 [&](const grpc::Status& status) { done.set_value(status); });
  return done.get_future().get();
}

// A connection below gRPC. Thread-compatible.
class Socket {
 public:
  explicit Socket(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = fd_ >= 0 && ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(Socket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connected() const { return connected_; }
  void Send(const std::string& bytes) {
    (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);  // It may be cut off already.
  }
  // Whether the other side ends the connection before `end`; what it says is thrown away.
  bool IsCutBefore(steady_clock::time_point end) {
    char bytes[4096];
    while (steady_clock::now() < end) {
      pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, 100) > 0 && ::recv(fd_, bytes, sizeof(bytes), 0) <= 0) return true;
    }
    return false;
  }

 private:
  int fd_;
  bool connected_ = false;
};

// The first words of HTTP/2, and nothing after them.
std::string Preface() {
  return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
}

int PortOf(const std::string& endpoint) {
  return std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
}

using HostileTest = ClusterOfOthers;

TEST_F(HostileTest, AThousandIdleConnectionsAreNothing) {
  rlimit mine{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &mine), 0);
  mine.rlim_cur = mine.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &mine), 0);
  if (mine.rlim_max < 4096) GTEST_SKIP() << "**** NOT TESTED: too few files may be opened here";
  Start();
  // As a user's shell or a service manager starts it: fewer files than callers.
  cluster_->coordinator().Kill();
  cluster_->coordinator().command() = {"prlimit", "--nofile=512:4096"};
  cluster_->coordinator().Start();
  cluster_->coordinator().Port();
  ExpectAllIsWell("1.0.0");
  const ProcessFigures before = Coordinator();
  std::vector<Socket> silent, idle;
  for (int k = 0; k < 500; ++k) {
    silent.emplace_back(PortOf(cluster_->server()));
    ASSERT_TRUE(silent.back().connected()) << k;
    idle.emplace_back(PortOf(cluster_->server()));
    ASSERT_TRUE(idle.back().connected()) << k;
    idle.back().Send(Preface());
  }
  const auto opened = steady_clock::now();
  ExpectAllIsWell("1.0.1");
  const ProcessFigures now = Coordinator();
  EXPECT_LE(now.threads, before.threads + 32);
  EXPECT_LE(now.rss_bytes, before.rss_bytes + 256 * kMiB);
  // Who says nothing is cut off after kHandshakeMax, ten times that on a busy machine.
  int cut = 0;
  for (Socket& socket : silent) cut += socket.IsCutBefore(opened + 10 * rpc::kHandshakeMax);
  EXPECT_EQ(cut, 500);
  idle.clear();
  ExpectAllIsWell("1.0.2");
  const auto end = steady_clock::now() + 60s;
  while (Coordinator().files > before.files + 50 && steady_clock::now() < end) {
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_LE(Coordinator().files, before.files + 50);
}

TEST_F(HostileTest, HugeMessagesAreRefusedAndNotKept) {
  Start();
  const ProcessFigures coordinator = Coordinator(), store = Store();
  const std::string huge(64 * kMiB, 'x');
  std::vector<std::jthread> callers;
  const auto call = [&](const std::string& endpoint, const std::string& method) {
    callers.emplace_back([&huge, endpoint, method] {
      const grpc::Status s = Call(ChannelTo(endpoint), "/tenon.v1." + method, huge);
      EXPECT_EQ(s.error_code(), StatusCode::RESOURCE_EXHAUSTED) << method << s.error_message();
    });
  };
  for (int k = 0; k < 2; ++k) {
    for (const char* method :
         {"JobService/SubmitJob", "WorkService/Complete", "RegistryService/PushPack"}) {
      call(cluster_->server(), method);
    }
    for (const char* method :
         {"StoreService/PutRuns", "StoreService/PutArtifact", "StoreService/Verify"}) {
      call(store_, method);
    }
  }
  callers.clear();  // Joins.
  // What was let go is given back every ten seconds.
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kKept =
      512 * kMiB;  // It keeps the last 256 MiB, to see who still reads it.
#else
  constexpr std::size_t kKept = 32 * kMiB;
#endif
  const auto is_given_back = [&] {
    return Coordinator().rss_bytes <= coordinator.rss_bytes + kKept &&
           Store().rss_bytes <= store.rss_bytes + kKept;
  };
  const auto end = steady_clock::now() + 120s;
  while (!is_given_back() && steady_clock::now() < end) std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(is_given_back()) << "coordinator: " << coordinator.rss_bytes << " -> "
                               << Coordinator().rss_bytes << ", store: " << store.rss_bytes
                               << " -> " << Store().rss_bytes;
  ExpectAllIsWell("1.0.0");
}

TEST_F(HostileTest, BytesThatAreNoProtocolAreCutOff) {
  Start();
  const ProcessFigures before = Coordinator();
  std::mt19937 random(1);
  std::vector<Socket> sockets;
  for (int k = 0; k < 200; ++k) {
    for (const std::string& endpoint : {cluster_->server(), store_}) {
      sockets.emplace_back(PortOf(endpoint));
      std::string bytes(1 + random() % 65536, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      if (k % 4 == 1) bytes = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
      if (k % 4 >= 2) bytes = Preface() + bytes;  // Frames of random kinds and lengths.
      sockets.back().Send(bytes);
    }
  }
  ExpectAllIsWell("1.0.0");
  sockets.clear();
  EXPECT_LE(Coordinator().threads, before.threads + 32);
  EXPECT_LE(Coordinator().rss_bytes, before.rss_bytes + 256 * kMiB);
  ExpectAllIsWell("1.0.1");
}

TEST_F(HostileTest, OtherVersionsUnknownJobsAndNonsenseAreAnsweredInWords) {
  Start();
  const auto channel = ChannelTo(cluster_->server()), store = ChannelTo(store_);
  const auto expect = [&](StatusCode code, const std::string& method, const std::string& bytes) {
    const grpc::Status s =
        Call(method.starts_with("StoreService") ? store : channel, "/tenon.v1." + method, bytes);
    EXPECT_EQ(s.error_code(), code) << method << ": " << s.error_message();
    EXPECT_FALSE(code != StatusCode::OK && s.error_message().empty() &&
                 code != StatusCode::UNIMPLEMENTED)
        << method;
  };
  // A protocol of the future: other services, other methods, more fields, more values.
  EXPECT_EQ(Call(channel, "/tenon.v2.JobService/SubmitJob", "").error_code(),
            StatusCode::UNIMPLEMENTED);
  expect(StatusCode::UNIMPLEMENTED, "JobService/Explode", "");
  expect(StatusCode::UNIMPLEMENTED, "StoreService/Explode", "");
  const std::string more =
      "\xa2\x06\x03"
      "new";  // Field 100.
  expect(StatusCode::OK, "JobService/ListJobs", more);
  expect(StatusCode::OK, "StoreService/Stats", more);
  v1::SubmitJobRequest submit;
  submit.set_request_id("r1");
  submit.mutable_spec()->set_universe("name: \"u\"");
  submit.mutable_spec()->set_pack_name("u");
  submit.mutable_spec()->set_pack_version("1.0.0");
  submit.mutable_spec()->set_mode(static_cast<v1::EnumerationMode>(99));
  expect(StatusCode::INVALID_ARGUMENT, "JobService/SubmitJob", submit.SerializeAsString());
  v1::ControlJobRequest control;
  control.set_id("j1");
  control.set_action(static_cast<v1::ControlJobRequest::Action>(99));
  expect(StatusCode::INVALID_ARGUMENT, "JobService/ControlJob", control.SerializeAsString());
  v1::ListJobsRequest list;
  list.add_states(static_cast<v1::JobState>(99));
  expect(StatusCode::INVALID_ARGUMENT, "JobService/ListJobs", list.SerializeAsString());
  v1::LeaseRequest lease;
  lease.set_request_id("r2");
  lease.set_node_id("n");
  lease.set_max_leases(1);
  lease.add_kinds(static_cast<v1::TaskKind>(99));
  expect(StatusCode::INVALID_ARGUMENT, "WorkService/Lease", lease.SerializeAsString());
  v1::CompleteRequest complete;
  complete.set_lease_id("1-1:j99/proofs/1/0");
  complete.set_task_id("j99/proofs/1/0");
  complete.set_node_id("n");
  complete.mutable_proofs()->add_verdicts()->set_kind(static_cast<v1::VerdictKind>(99));
  expect(StatusCode::INVALID_ARGUMENT, "WorkService/Complete", complete.SerializeAsString());
  // Jobs, tasks and packs that there are not.
  complete.mutable_proofs()->mutable_verdicts(0)->set_kind(v1::VERDICT_KIND_PROVED);
  complete.mutable_proofs()->mutable_verdicts(0)->set_repeatable(true);
  expect(StatusCode::NOT_FOUND, "WorkService/Complete", complete.SerializeAsString());
  v1::GetJobRequest get;
  for (const std::string& id : {std::string("j99"), std::string(), std::string(100'000, 'j'),
                                std::string("j18446744073709551616"), std::string("../j1")}) {
    get.set_id(id);
    expect(StatusCode::NOT_FOUND, "JobService/GetJob", get.SerializeAsString());
    expect(StatusCode::NOT_FOUND, "JobService/WatchJob", get.SerializeAsString());
  }
  v1::PullPackRequest pull;
  pull.set_name("none");
  expect(StatusCode::NOT_FOUND, "RegistryService/PullPack", pull.SerializeAsString());
  // What is no message at all.
  std::mt19937 random(2);
  for (const char* method :
       {"JobService/SubmitJob", "JobService/WatchJob", "WorkService/Lease", "WorkService/Complete",
        "WorkService/Heartbeat", "WorkService/Release", "RegistryService/PushPack",
        "RegistryService/PullPack", "StoreService/PutRuns", "StoreService/ScanRuns",
        "StoreService/PutArtifact", "StoreService/GetArtifact"}) {
    const bool of_store = std::string(method).starts_with("StoreService");
    for (int k = 0; k < 20; ++k) {
      std::string bytes(1 + random() % 300, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      bytes += '\xff';  // Never a whole message.
      const grpc::Status s =
          Call(of_store ? store : channel, std::string("/tenon.v1.") + method, bytes);
      // To the receiver a stream ends with what cannot be read; nothing of it is acknowledged.
      EXPECT_TRUE(!s.ok() || std::string(method) == "StoreService/PutRuns") << method;
      EXPECT_NE(s.error_code(), StatusCode::DEADLINE_EXCEEDED) << method;
    }
  }
  ExpectAllIsWell("1.0.0");
}

TEST_F(HostileTest, WhatIsNoTokenLetsNobodyIn) {
  testing::TempFolder folder;
  const std::string tokens = folder / "tokens";
  const RunResult made = testing::Tenon(
      {"token", "create", "--token-file", tokens, "--name", "ci", "--role", "submit,publish,node"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string secret = made.out.substr(0, made.out.find('\n'));
  e2e::ClusterOptions options{.stores = 1, .workers = 0, .verifiers = 0};
  options.of_all = {"--token-file", tokens, "--token", folder.Write("token", secret)};
  Start(options);
  // One that may do it, so that what is tried below is refused for nothing else.
  const auto call = [&](const std::string& authorization) {
    // Also to the store: it asks for the same.
    grpc::ChannelArguments arguments;
    const auto credentials = grpc::experimental::LocalCredentials(LOCAL_TCP);
    const auto to = [&](const std::string& endpoint) {
      return grpc::CreateCustomChannel(endpoint, credentials, arguments);
    };
    const grpc::Status one =
        Call(to(cluster_->server()), "/tenon.v1.JobService/ListJobs", "", authorization);
    const grpc::Status other = Call(to(store_), "/tenon.v1.StoreService/Stats", "", authorization);
    EXPECT_EQ(one.error_code(), other.error_code()) << one.error_message() << other.error_message();
    return one.error_code();
  };
  EXPECT_EQ(call("Bearer " + secret), StatusCode::OK);
  for (const std::string& wrong :
       {std::string(), std::string("Bearer"), std::string("Bearer "), secret, "bearer" + secret,
        "Basic " + secret, "Bearer  " + secret, "Bearer " + secret + " ", "Bearer " + secret + "0",
        "Bearer " + secret.substr(0, secret.size() - 1), "Bearer " + secret + "," + secret,
        "Bearer " + secret + ", Bearer " + secret, std::string("Bearer ci"),
        std::string("Bearer *"), std::string("Bearer never"), "Bearer " + std::string(4000, 'x')}) {
    EXPECT_EQ(call(wrong), StatusCode::UNAUTHENTICATED) << wrong.substr(0, 100);
  }
  // More than a header may have.
  EXPECT_NE(call("Bearer " + std::string(200'000, 'x')), StatusCode::OK);
  EXPECT_EQ(call("Bearer " + secret), StatusCode::OK);
}

}  // namespace
}  // namespace tenon::faults
