// Why a leader never serves while another one does, but for what etcd itself would have to break:
// let T be the lease's time. A call that prolongs it is sent at t by the leader's monotonic clock,
// so etcd counts T from t or later; the leader counts from t, and stops T/5 before the end. The T/5
// is for clocks that run at different speeds and for calls under way. A process that was stopped
// for longer finds out when it wakes: its first look at the clock says so.
#include "coordinator/etcd/leadership.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <fmt/core.h>

#include "client/rpc/connection.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "proto/convert/status.h"

namespace tenon::coordinator {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kCall{10'000};

// How long a lease can be counted on, from before the call that gave it.
Clock::duration Sure(std::chrono::seconds ttl) { return milliseconds(ttl) * 4 / 5; }

}  // namespace

bool MayPass(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

std::string LeaderKey(std::string_view prefix) { return fmt::format("{}leader", prefix); }

Status NotLeader(const std::optional<std::string>& leader) {
  convert::ErrorDetails details{.reason = rpc::kNotLeader};
  if (leader) details.metadata[rpc::kLeaderKey] = *leader;
  return convert::WithDetails(
      base::Unavailable(leader ? fmt::format("this coordinator is a standby; {} leads", *leader)
                               : "this coordinator is a standby, and nobody leads just now"),
      details);
}

// Prolongs the lease, and notices when that has failed for too long.
struct Leadership::Keeper {
  std::int64_t lease = 0;
  std::chrono::seconds ttl{0};
  std::atomic<Clock::rep> until{0};
  std::jthread thread;

  Clock::time_point end() const { return Clock::time_point(Clock::duration(until.load())); }
  void Count(Clock::time_point from, std::chrono::seconds time) {
    until = (from + Sure(time)).time_since_epoch().count();
  }
  void Run(const etcd::Client& client, const std::stop_token& stop, std::stop_source& lost) {
    while (!stop.stop_requested() && !lost.stop_requested()) {
      const Clock::time_point begin = Clock::now();
      const auto left = std::chrono::duration_cast<milliseconds>(end() - begin);
      if (left <= milliseconds(0)) break;
      const auto prolonged = client.KeepAlive(lease, left, stop);
      if (prolonged.ok() && prolonged->count() == 0) break;  // It has expired.
      if (prolonged.ok()) Count(begin, *prolonged);
      base::SleepFor(prolonged.ok() ? milliseconds(ttl) / 4 : milliseconds(50), stop);
    }
    if (!stop.stop_requested()) lost.request_stop();
  }
};

StatusOr<std::unique_ptr<Leadership>> Leadership::Win(const etcd::Client& client,
                                                      const CampaignOptions& options,
                                                      const std::stop_token& stop) {
  const std::string key = LeaderKey(options.prefix);
  std::optional<std::string> known;
  const auto tell = [&](const std::optional<std::string>& leader) {
    if (options.on_leader && leader != known) options.on_leader(leader);
    known = leader;
  };
  const auto trouble = [&](const Status& status) {
    tell(std::nullopt);
    if (options.on_trouble) options.on_trouble(status);
    base::SleepFor(options.poll, stop);
  };
  auto keeper = std::make_unique<Keeper>();
  while (!stop.stop_requested()) {
    const auto leader = client.Get(key, kCall, stop);
    if (!leader.ok()) {
      if (stop.stop_requested()) break;
      if (!MayPass(leader.status())) return leader.status();
      trouble(leader.status());
      continue;
    }
    if (*leader) {
      tell((*leader)->value);
      base::SleepFor(options.poll, stop);
      continue;
    }
    // A lease for each attempt, so that who only waits has none to keep.
    const Clock::time_point begin = Clock::now();
    const auto lease = client.Grant(options.ttl, kCall, stop);
    if (stop.stop_requested()) break;
    if (!lease.ok()) {
      if (!MayPass(lease.status())) return lease.status();
      trouble(lease.status());
      continue;
    }
    keeper->lease = lease->id;
    keeper->ttl = lease->ttl;
    keeper->Count(begin, lease->ttl);
    const auto txn = client.Txn({.key = key, .create_revision = 0},
                                {{.kind = etcd::Operation::Kind::kPut,
                                  .key = key,
                                  .value = options.address,
                                  .lease = lease->id}},
                                std::chrono::duration_cast<milliseconds>(Sure(lease->ttl)), stop);
    // A transaction that was repeated may find that it was done the first time.
    const bool ours =
        txn.ok() && (txn->succeeded || (txn->found && txn->found->lease == lease->id));
    if (!ours) {
      client.Revoke(lease->id, kCall, stop).IgnoreError();
      if (stop.stop_requested()) break;
      if (!txn.ok() && !MayPass(txn.status()) && !absl::IsNotFound(txn.status())) {
        return txn.status();
      }
      if (!txn.ok()) trouble(txn.status());
      continue;
    }
    const std::int64_t revision = txn->succeeded ? txn->revision : txn->found->create_revision;
    return std::unique_ptr<Leadership>(
        new Leadership(client, {.key = key, .create_revision = revision}, std::move(keeper)));
  }
  return absl::CancelledError("the campaign was given up");
}

Leadership::Leadership(const etcd::Client& client, etcd::Condition fence,
                       std::unique_ptr<Keeper> keeper)
    : client_(client), fence_(std::move(fence)), keeper_(std::move(keeper)) {
  CHECK(fence_.create_revision > 0);
  keeper_->thread =
      std::jthread([this](const std::stop_token& stop) { keeper_->Run(client_, stop, lost_); });
}

Leadership::~Leadership() {
  keeper_->thread.request_stop();
  keeper_->thread.join();
  // Without success it ends by itself.
  client_.Revoke(keeper_->lease, milliseconds(1000)).IgnoreError();
}

bool Leadership::Holds() const { return !lost_.stop_requested() && Clock::now() < keeper_->end(); }

void Leadership::Lose() { lost_.request_stop(); }

}  // namespace tenon::coordinator
