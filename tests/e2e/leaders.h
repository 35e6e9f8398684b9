// Who leads a cluster with an etcd, and what happens when it is killed.
#pragma once

#include <memory>
#include <string>

#include "client/etcd/client.h"
#include "tests/e2e/cluster.h"
#include "tests/support/etcd.h"

namespace tenon::e2e {

// Thread-compatible.
class Watcher {
 public:
  Watcher(const testing::Etcd& etcd, Cluster& cluster);

  std::string Address() const;  // Of the leader; empty: there is none.
  // The leader's service; waits until there is a leader other than `not_this`.
  Service& Leader(const std::string& not_this = "") const;

 private:
  std::unique_ptr<etcd::Client> client_;
  Cluster& cluster_;
};

// Kills the leader at random times while jobs for the matrix universe run one after another,
// `kills` times, and expects that each makes the pack that one machine makes. The seed is
// $TENON_STORM_SEED, else 1.
void KillLeaders(const std::string& operators, int kills);

}  // namespace tenon::e2e
