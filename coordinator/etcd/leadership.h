// Leadership: which of several coordinators with one etcd serves.
//
// The leader is who created the key PREFIXleader, whose value is the leader's address. The key
// hangs on a lease of etcd that its leader keeps alive; when the leader dies, etcd removes the key
// after the lease's time, and the first of those who wait creates it anew. The revision at which
// etcd created the key grows from leader to leader: every write of a leader has the condition that
// the key is still the one it created (journal.h). So whoever was deposed can write nothing,
// however long it slept and whatever its clock says.
//
// Reads have no such guard, so a leader also stops by its own monotonic clock: a part of the
// lease's time before the lease could end, counted from before it was last prolonged.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/etcd/client.h"
#include "core/base/status.h"

namespace tenon::coordinator {

struct CampaignOptions {
  std::string prefix;           // Of all keys in etcd.
  std::string address;          // HOST:PORT under which clients reach this coordinator. Not empty.
  std::chrono::seconds ttl{5};  // Of the lease; etcd may make it longer.
  std::chrono::milliseconds poll{200};  // How often one that waits looks.
  // Told who leads, or that nobody is known to lead, whenever that has changed; and of trouble with
  // etcd. From the thread that waits. May be null.
  std::function<void(const std::optional<std::string>& leader)> on_leader;
  std::function<void(const Status& trouble)> on_trouble;
};

// Whether trouble with etcd is worth waiting for.
bool MayPass(const Status& status);

// The key that says who leads.
std::string LeaderKey(std::string_view prefix);

// One term of a leader. Thread-safe.
class Leadership {
 public:
  // Waits until this coordinator leads. An etcd that cannot be reached is waited for, too.
  // CANCELLED: `stop` was requested; other errors: etcd refuses what it is asked for. The client
  // outlives it.
  static StatusOr<std::unique_ptr<Leadership>> Win(const etcd::Client& client,
                                                   const CampaignOptions& options,
                                                   const std::stop_token& stop);
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;
  ~Leadership();  // Resigns, if it still leads: another one may lead at once.

  // That the leader's key is the one of this term: the condition of all writes.
  const etcd::Condition& fence() const { return fence_; }
  // Whether nobody else can lead yet, by this process's clock.
  bool Holds() const;
  // Ends the term early: somebody else is known to lead.
  void Lose();
  // Requested when the term ends, except by destruction.
  std::stop_token lost() const { return lost_.get_token(); }

 private:
  struct Keeper;
  Leadership(const etcd::Client& client, etcd::Condition fence, std::unique_ptr<Keeper> keeper);

  const etcd::Client& client_;
  const etcd::Condition fence_;
  std::stop_source lost_;
  std::unique_ptr<Keeper> keeper_;  // Its thread ends first.
};

// UNAVAILABLE as a standby answers it: with the leader's address, if it is known.
Status NotLeader(const std::optional<std::string>& leader);

}  // namespace tenon::coordinator
