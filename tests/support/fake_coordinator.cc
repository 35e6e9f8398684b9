#include "tests/support/fake_coordinator.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "tenon/v1/work.grpc.pb.h"

namespace tenon::testing {

using Clock = std::chrono::steady_clock;
// A holder that is not heard of for so long has lost its lease.
constexpr std::chrono::milliseconds kTtl{10'000};

struct FakeCoordinator::Impl final : v1::WorkService::Service {
  mutable base::Mutex mutex;
  int port ABSL_GUARDED_BY(mutex) = 0;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::vector<convert::Task> open ABSL_GUARDED_BY(mutex);
  struct Leased {
    convert::Task task;
    Clock::time_point heard;  // Of its holder.
  };
  std::map<std::string, Leased> leased ABSL_GUARDED_BY(mutex);  // By lease.
  std::set<std::string> lost ABSL_GUARDED_BY(mutex);
  std::set<std::string> done ABSL_GUARDED_BY(mutex);  // Tasks.
  std::vector<convert::Complete> completed ABSL_GUARDED_BY(mutex);
  std::vector<convert::Release> released ABSL_GUARDED_BY(mutex);
  std::vector<convert::Heartbeat> heartbeats ABSL_GUARDED_BY(mutex);
  std::size_t leases ABSL_GUARDED_BY(mutex) = 0;
  std::unique_ptr<grpc::Server> server;

  grpc::Status Lease(grpc::ServerContext* context, const v1::LeaseRequest* message,
                     v1::LeaseResponse* out) override {
    const auto request = convert::FromMessage(*message);
    if (!request.ok()) return Refused(request.status());
    const base::MutexLock lock(mutex);
    const auto fits = [&](const convert::Task& task) {
      return std::ranges::count(request->kinds, convert::KindOf(task)) > 0;
    };
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return stopping || std::ranges::any_of(open, fits);
    };
    mutex.AwaitFor(ready, request->wait);
    convert::LeaseResponse response{.retry_after = std::chrono::milliseconds(10)};
    const auto it = std::ranges::find_if(open, fits);
    // Who has hung up meanwhile gets nothing.
    if (!stopping && it != open.end() && !context->IsCancelled()) {
      convert::Lease lease{.id = fmt::format("lease-{}", ++leases), .task = *it, .ttl = kTtl};
      open.erase(it);
      leased.emplace(lease.id, Leased{lease.task, Clock::now()});
      response.leases.push_back(std::move(lease));
    }
    convert::ToMessage(response, *out);
    return grpc::Status::OK;
  }

  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest* message,
                         v1::HeartbeatResponse* out) override {
    const auto beat = convert::FromMessage(*message);
    if (!beat.ok()) return Refused(beat.status());
    const base::MutexLock lock(mutex);
    convert::HeartbeatResponse response{.next_heartbeat = std::chrono::milliseconds(100)};
    for (const std::string& id : beat->lease_ids) {
      if (lost.count(id) != 0) response.lost_lease_ids.push_back(id);
      if (const auto it = leased.find(id); it != leased.end()) it->second.heard = Clock::now();
    }
    heartbeats.push_back(*beat);
    convert::ToMessage(response, *out);
    return grpc::Status::OK;
  }

  grpc::Status Complete(grpc::ServerContext*, const v1::CompleteRequest* message,
                        v1::CompleteResponse* out) override {
    const auto complete = convert::FromMessage(*message);
    if (!complete.ok()) return Refused(complete.status());
    const base::MutexLock lock(mutex);
    leased.erase(complete->lease_id);
    out->set_was_needed(done.insert(complete->task_id).second);
    std::erase_if(open, [&](const convert::Task& t) { return t.id == complete->task_id; });
    completed.push_back(*complete);
    return grpc::Status::OK;
  }

  grpc::Status Release(grpc::ServerContext*, const v1::ReleaseRequest* message,
                       v1::ReleaseResponse*) override {
    const auto release = convert::FromMessage(*message);
    if (!release.ok()) return Refused(release.status());
    const base::MutexLock lock(mutex);
    leased.erase(release->lease_id);
    released.push_back(*release);
    return grpc::Status::OK;
  }

  // Takes the leases that were last heard of before `then` away.
  void Lose(Clock::time_point then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::erase_if(leased, [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      const auto& [lease, held] = entry;
      if (held.heard > then) return false;
      lost.insert(lease);
      open.push_back(held.task);
      return true;
    });
  }

  static grpc::Status Refused(const Status& s) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, base::Message(s));
  }
};

FakeCoordinator::FakeCoordinator() : impl_(std::make_unique<Impl>()) { Start(); }
FakeCoordinator::~FakeCoordinator() { Stop(); }

std::string FakeCoordinator::endpoint() const {
  const base::MutexLock lock(impl_->mutex);
  return fmt::format("127.0.0.1:{}", impl_->port);
}

void FakeCoordinator::Start() {
  int port = 0;
  grpc::ServerBuilder builder;
  {
    const base::MutexLock lock(impl_->mutex);
    impl_->stopping = false;
    builder.AddListeningPort(fmt::format("127.0.0.1:{}", impl_->port),
                             grpc::InsecureServerCredentials(), &port);
  }
  builder.RegisterService(impl_.get());
  impl_->server = builder.BuildAndStart();
  CHECK(impl_->server != nullptr);
  const base::MutexLock lock(impl_->mutex);
  impl_->port = port;
}

void FakeCoordinator::Stop() {
  if (!impl_->server) return;
  {
    const base::MutexLock lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  impl_->server->Wait();
  impl_->server.reset();
}

void FakeCoordinator::Add(const convert::Task& task) {
  const base::MutexLock lock(impl_->mutex);
  impl_->open.push_back(task);
}

void FakeCoordinator::LoseLeases() {
  const base::MutexLock lock(impl_->mutex);
  impl_->Lose(Clock::now());
}

std::vector<convert::Complete> FakeCoordinator::completed() const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->completed;
}
std::vector<convert::Release> FakeCoordinator::released() const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->released;
}
std::vector<convert::Heartbeat> FakeCoordinator::heartbeats() const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->heartbeats;
}
std::size_t FakeCoordinator::leases() const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->leases;
}

bool FakeCoordinator::WaitUntil(const std::function<bool()>& done) const {
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (!done()) {
    if (Clock::now() > end) return false;
    {
      const base::MutexLock lock(impl_->mutex);
      impl_->Lose(Clock::now() - kTtl);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace tenon::testing
