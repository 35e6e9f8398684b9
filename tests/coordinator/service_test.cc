// The coordinator's service with nodes over the loopback: a store, workers that enumerate in one
// piece, verifiers. What comes out is what one process makes, also when the coordinator is
// restarted on the way.
#include "coordinator/serve.h"

#include <filesystem>
#include <future>
#include <map>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/generate.h"
#include "client/registry/pack_file.h"
#include "client/registry/sha256.h"
#include "client/rpc/job_client.h"
#include "client/rpc/node.h"
#include "client/rpc/store_client.h"
#include "client/rpc/work_client.h"
#include "coordinator/publish/sink.h"
#include "core/base/mutex.h"
#include "core/graph/classes.h"
#include "core/rules/canonical.h"
#include "proto/convert/universe.h"
#include "store/serve.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"
#include "worker/enumerate.h"
#include "worker/serve.h"

namespace tenon::coordinator {
namespace {

using namespace std::chrono_literals;
using convert::JobState;
using testing::ElementsAre;
using testing::HasSubstr;

// Packs in memory: they outlive the coordinator.
class Shelf {
 public:
  class Sink : public PackSink {
   public:
    explicit Sink(Shelf& shelf) : shelf_(shelf) {}
    Status Publish(const std::string& name, const std::string& version,
                   const std::string& file) override {
      const base::MutexLock lock(shelf_.mutex_);
      const auto [it, fresh] = shelf_.files_.emplace(name + "@" + version, file);
      if (it->second == file) return OkStatus();
      return absl::AlreadyExistsError("other content");
    }
    StatusOr<bool> Has(const std::string& name, const std::string& version) const override {
      const base::MutexLock lock(shelf_.mutex_);
      return shelf_.files_.contains(name + "@" + version);
    }

   private:
    Shelf& shelf_;
  };
  std::string Get(const std::string& reference) {
    const base::MutexLock lock(mutex_);
    return files_[reference];
  }

 private:
  base::Mutex mutex_;
  std::map<std::string, std::string> files_;
};

// A role in a thread. Stops and waits when it goes.
class Running {
 public:
  template <class Body>
  explicit Running(Body body)
      : thread_([this, body](std::stop_token stop) { status_ = body(stop); }) {}
  Status Stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  ~Running() { (void)Stop(); }

 private:
  Status status_;
  std::jthread thread_;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    char path[] = "/tmp/tenon-coordinator-XXXXXX";
    directory_ = ::mkdtemp(path);
  }
  ~ServiceTest() override {
    nodes_.clear();
    coordinator_.reset();
    stores_.clear();
    std::filesystem::remove_all(directory_);
  }

  void StartCoordinator() {
    ServeOptions options;
    options.listen = fmt::format("127.0.0.1:{}", port_);
    options.data_directory = directory_ + "/coordinator";
    options.lease_ttl = 3s;
    options.code_version = "test";
    options.min_stores = min_stores_;
    options.make_sink = [this](board::Journal&) { return std::make_unique<Shelf::Sink>(shelf_); };
    std::promise<void> listening;
    options.on_listening = [&](int port) {
      port_ = port;
      listening.set_value();
    };
    coordinator_ =
        std::make_unique<Running>([options](std::stop_token stop) { return Serve(options, stop); });
    ASSERT_EQ(listening.get_future().wait_for(20s), std::future_status::ready);
  }
  std::string Address() const { return fmt::format("127.0.0.1:{}", port_); }
  std::shared_ptr<rpc::Connection> Connect() const { return *rpc::Connection::Open(Address()); }

  void StartStore(const std::string& id = "store-0") {
    store::ServeOptions options;
    options.directory = directory_ + "/" + id;
    options.coordinator = Address();
    options.node_id = id;
    std::promise<void> listening;
    options.on_listening = [&](int) { listening.set_value(); };
    stores_.push_back(std::make_unique<Running>(
        [options](std::stop_token stop) { return store::Serve(options, stop); }));
    ASSERT_EQ(listening.get_future().wait_for(20s), std::future_status::ready);
  }

  void StartNode(const std::string& id, const std::string& role,
                 std::vector<convert::TaskKind> kinds, rpc::Work work) {
    rpc::NodeOptions options;
    options.identity = {.id = id, .role = role};
    options.kinds = std::move(kinds);
    options.lease_wait = 1s;
    options.heartbeat = 500ms;
    nodes_.push_back(
        std::make_unique<Running>([connection = Connect(), options, work](std::stop_token stop) {
          return rpc::RunNode(connection, options, work, stop);
        }));
  }
  void StartNodes() {
    using convert::TaskKind;
    StartNode("worker-0", "worker", {TaskKind::kShard, TaskKind::kCollect, TaskKind::kJoin},
              Enumerate);
    StartNode("verifier-0", "verifier", {TaskKind::kProofs}, Prove);
    StartNode("verifier-1", "verifier", {TaskKind::kProofs}, Prove);
  }

  // Shards and parts do nothing; who joins enumerates everything.
  static StatusOr<rpc::Outcome> Enumerate(unsigned, const convert::Task& task,
                                          std::stop_token stop) {
    if (convert::KindOf(task) == convert::TaskKind::kShard) {
      return rpc::Outcome{convert::ShardResult{1, 1, 1}, 1ms};
    }
    if (const auto* part = std::get_if<convert::CollectTask>(&task.work)) {
      convert::CollectResult none;
      none.graphs_by_size.resize(std::size_t(part->enumeration.max_operators));
      none.artifact_sha256 = std::string(64, '0');
      return rpc::Outcome{std::move(none), 1ms};
    }
    const auto& join = std::get<convert::JoinTask>(task.work);
    const convert::EnumerationTask& e = join.enumeration;
    ASSIGN_OR_RETURN(const graph::Universe universe, convert::ParseUniverse(e.universe, "task"));
    worker::EnumerateOptions options;
    options.max_operators = e.max_operators;
    ASSIGN_OR_RETURN(const worker::Enumeration found, worker::Enumerate(universe, options));
    const std::string bytes = graph::EncodeClasses(
        graph::Fragment(universe, found.table, found.class_at, found.class_members));
    const std::string sha = registry::ToHex(registry::Sha256(bytes));
    ASSIGN_OR_RETURN(auto connection, rpc::Connection::Open(e.stores.endpoints[0]));
    RETURN_IF_ERROR(rpc::StoreClient(std::move(connection))
                        .PutArtifact(e.stores.table, join.artifact, bytes, sha, stop));
    return rpc::Outcome{convert::JoinResult{{found.graphs_by_size, found.graphs, found.classes,
                                             found.equivalent_pairs, bytes.size(), sha}},
                        2ms};
  }
  static StatusOr<rpc::Outcome> Prove(unsigned, const convert::Task& task, std::stop_token) {
    convert::ProofResult result;
    for (const std::string& bytes : std::get<convert::ProofTask>(task.work).rules) {
      ASSIGN_OR_RETURN(const rules::Rule rule, rules::DecodeRule(bytes));
      ASSIGN_OR_RETURN(const verifier::Verdict verdict, verifier::Prove(rule, {}));
      convert::ProofVerdict v;
      v.kind = static_cast<convert::VerdictKind>(verdict.kind);
      v.reason = verdict.reason;
      v.repeatable = verdict.repeatable;
      if (verdict.kind == verifier::VerdictKind::kProved) {
        auto certificate = certify::Certify(rule);
        if (certificate.ok()) v.certificate = *std::move(certificate);
      }
      result.verdicts.push_back(std::move(v));
    }
    return rpc::Outcome{std::move(result), 3ms};
  }

  static convert::JobSpec Matrix() {
    convert::JobSpec spec;
    spec.universe = *convert::BuiltinUniverseText("matrix");
    spec.max_operators = 2;
    spec.pack_name = "matrix";
    spec.pack_version = "1.0.0";
    return spec;
  }
  static std::string TextOf(const std::string& content) {
    const auto decoded = pack::DecodeContent(content);
    return decoded.ok() ? pack::TextView(*decoded, "pack") : base::Message(decoded.status());
  }
  // The content that one process makes.
  static std::string Expected() {
    cli::GenerateOptions options;
    options.max_operators = 2;
    const auto made = cli::Generate(*convert::LoadUniverse("matrix"), options);
    EXPECT_TRUE(made.ok()) << made.status();
    return *pack::EncodeContent(made->content);
  }
  std::string Published(const std::string& reference) {
    const auto file = registry::DecodePackFile(shelf_.Get(reference));
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *pack::EncodeContent(file->content) : "";
  }

  std::string directory_;
  int port_ = 0;
  Shelf shelf_;
  std::uint32_t min_stores_ = 1;
  std::unique_ptr<Running> coordinator_;
  std::vector<std::unique_ptr<Running>> stores_, nodes_;
};

TEST_F(ServiceTest, AClusterMakesThePackOfOneProcess) {
  StartCoordinator();
  StartStore();
  StartNodes();
  const rpc::JobClient jobs(Connect());
  const auto job = jobs.Submit(Matrix(), "request-1");
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<JobState> states;
  const auto done = jobs.Watch(job->id, [&](const convert::Job& now) {
    if (states.empty() || states.back() != now.state) states.push_back(now.state);
    return true;
  });
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->state, JobState::kDone) << done->error;
  EXPECT_TRUE(std::is_sorted(states.begin(), states.end()));
  EXPECT_EQ(done->pack_reference, "matrix@1.0.0");
  EXPECT_GT(done->counts.rules, 0u);
  EXPECT_EQ(TextOf(Published("matrix@1.0.0")), TextOf(Expected()));
  EXPECT_TRUE(Published("matrix@1.0.0") == Expected());
  EXPECT_EQ(jobs.Submit(Matrix(), "request-1")->id, job->id);
  EXPECT_TRUE(absl::IsAlreadyExists(jobs.Submit(Matrix()).status()));
}

// The same with the workers of the product and the records spread over two stores.
TEST_F(ServiceTest, RealWorkersAndTwoStoresMakeTheSamePack) {
  min_stores_ = 2;
  StartCoordinator();
  StartStore("store-0");
  StartStore("store-1");
  for (const char* id : {"worker-0", "worker-1"}) {
    worker::ServeOptions options;
    options.coordinator = Address();
    options.node_id = id;
    nodes_.push_back(std::make_unique<Running>(
        [options](std::stop_token stop) { return worker::Serve(options, stop); }));
  }
  StartNode("verifier-0", "verifier", {convert::TaskKind::kProofs}, Prove);
  const rpc::JobClient jobs(Connect());
  convert::JobSpec spec = Matrix();
  spec.shards = 7;
  const auto job = jobs.Submit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto done = jobs.Watch(job->id, [](const convert::Job&) { return true; });
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->state, JobState::kDone) << done->error;
  EXPECT_EQ(done->shards_done, 7u);
  EXPECT_GT(done->cpu.count(), 0);
  EXPECT_EQ(TextOf(Published("matrix@1.0.0")), TextOf(Expected()));
  EXPECT_TRUE(Published("matrix@1.0.0") == Expected());
}

// The coordinator goes down while nodes are in the middle of a task, six times: among shards, while
// the classes are collected, in rounds of proofs. The nodes report to the next one.
TEST_F(ServiceTest, RestartsOnTheWayChangeNothing) {
  StartCoordinator();
  StartStore();
  base::Mutex mutex;
  int begun = 0, restarts = 0;  // Tasks.
  const auto with_restarts = [&](rpc::Work work) {
    return [&, work](unsigned slot, const convert::Task& task, std::stop_token stop) {
      {
        const base::MutexLock lock(mutex);
        if (++begun % 2 == 0 && begun / 2 <= 6) {
          const int mine = begun / 2;
          const auto done = [&] { return restarts >= mine; };
          mutex.AwaitFor(done, 60s);
        }
      }
      return work(slot, task, stop);
    };
  };
  using convert::TaskKind;
  StartNode("worker-0", "worker", {TaskKind::kShard, TaskKind::kCollect, TaskKind::kJoin},
            with_restarts(Enumerate));
  StartNode("verifier-0", "verifier", {TaskKind::kProofs}, with_restarts(Prove));
  const rpc::JobClient jobs(Connect());
  const auto job = jobs.Submit(Matrix());
  ASSERT_TRUE(job.ok()) << job.status();
  for (int k = 1; k <= 6; ++k) {
    {
      const base::MutexLock lock(mutex);
      const auto due = [&] { return begun >= 2 * k; };
      ASSERT_TRUE(mutex.AwaitFor(due, 60s)) << k;
    }
    EXPECT_TRUE(coordinator_->Stop().ok());
    StartCoordinator();
    const base::MutexLock lock(mutex);
    ++restarts;
  }
  const auto done = jobs.Watch(job->id, [](const convert::Job&) { return true; });
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->state, JobState::kDone) << done->error;
  nodes_.clear();  // They refer to what is here.
  EXPECT_EQ(TextOf(Published("matrix@1.0.0")), TextOf(Expected()));
  EXPECT_TRUE(Published("matrix@1.0.0") == Expected());
}

TEST_F(ServiceTest, ErrorsComeWithDetails) {
  StartCoordinator();
  const rpc::JobClient jobs(Connect());
  convert::JobSpec bad = Matrix();
  bad.pack_name = "No";
  bad.priority = 1000;
  const Status refused = jobs.Submit(bad).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  std::vector<std::string> fields;
  for (const auto& v : convert::DetailsOf(refused).violations) fields.push_back(v.field);
  EXPECT_THAT(fields, ElementsAre("spec.pack_name", "spec.priority"));
  EXPECT_TRUE(absl::IsNotFound(jobs.Get("j99").status()));
  EXPECT_EQ(convert::DetailsOf(jobs.Get("j99").status()).metadata["job"], "j99");
  EXPECT_TRUE(
      absl::IsNotFound(jobs.Watch("j99", [](const convert::Job&) { return true; }).status()));
  const auto job = jobs.Submit(Matrix());
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(jobs.Control({job->id, convert::ControlJob::Action::kCancel}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      jobs.Control({job->id, convert::ControlJob::Action::kPause}).status()));
  convert::Complete late{"1-1:j1/shard/0", "j1/shard/0", "n", 0ms, convert::ShardResult{}};
  EXPECT_TRUE(absl::IsNotFound(rpc::WorkClient(Connect()).Complete(late).status()));
}

TEST_F(ServiceTest, WhoGivesUpWaitingGetsNoLease) {
  StartCoordinator();
  convert::LeaseRequest request{"", "impatient", {convert::TaskKind::kShard}, 64, 30s};
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return rpc::WorkClient(Connect()).Lease(request, stop.get_token());
  });
  EXPECT_EQ(waiting.wait_for(300ms), std::future_status::timeout);
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(waiting.get().status()));
  ASSERT_TRUE(rpc::JobClient(Connect()).Submit(Matrix()).ok());
  auto patient = std::async(std::launch::async, [&] {
    convert::LeaseRequest other = request;
    other.node_id = "patient";
    return rpc::WorkClient(Connect()).Lease(other);
  });
  StartStore();  // Only now the job starts.
  const auto leases = patient.get();
  ASSERT_TRUE(leases.ok()) << leases.status();
  ASSERT_FALSE(leases->leases.empty());
  EXPECT_EQ(leases->leases[0].attempt, 1u);
}

TEST_F(ServiceTest, CallsWaitForACoordinatorThatComesBack) {
  StartCoordinator();
  const auto connection = Connect();
  EXPECT_TRUE(coordinator_->Stop().ok());
  auto listed =
      std::async(std::launch::async, [&] { return rpc::JobClient(connection).List({}).status(); });
  EXPECT_EQ(listed.wait_for(300ms), std::future_status::timeout);
  StartCoordinator();
  EXPECT_TRUE(listed.get().ok());
}

TEST_F(ServiceTest, APortInUseIsTold) {
  StartCoordinator();
  ServeOptions options;
  options.listen = Address();
  options.data_directory = directory_ + "/other";
  const Status status = Serve(options, {});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(base::Message(status), HasSubstr(Address()));
}

}  // namespace
}  // namespace tenon::coordinator
