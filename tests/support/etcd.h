// A real etcd on loopback, of one or several members, for tests that kill them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/daemon.h"
#include "tests/support/process.h"

namespace tenon::testing {

// PEM files: clients must show a certificate that the authority signed.
struct EtcdTls {
  std::string authority, certificate, key;
};

// Thread-compatible.
class Etcd {
 public:
  // Started, and ready to answer. `flags` are of every member; no files in `tls`: none. CHECKs.
  explicit Etcd(int members = 1, std::vector<std::string> flags = {}, EtcdTls tls = {});

  int members() const { return static_cast<int>(members_.size()); }
  std::string endpoints() const;  // HOST:PORT,.. of all members.
  std::string endpoint(int member) const;

  bool IsRunning(int member) const { return members_[std::size_t(member)].process != nullptr; }
  void Kill(int member);   // kill -9.
  void Start(int member);  // With what it had on disk; does not wait.
  void Signal(int member, int signal);
  // Until a member that runs says that it is healthy. CHECKs that it does within a minute.
  void AwaitHealth(int member) const;
  // The member that leads the others. CHECKs that one does within a minute.
  int Leader() const;
  // The answer to a JSON request to its HTTP gateway.
  std::string Post(const std::string& path, const std::string& json) const;

 private:
  struct Member {
    std::string client, peer;  // HOST:PORT
    std::unique_ptr<Daemon> process;
  };
  std::string Curl(const std::string& url, std::vector<std::string> arguments = {}) const;

  TempFolder folder_;
  std::vector<std::string> flags_;
  const EtcdTls tls_;
  const std::string scheme_;
  std::vector<Member> members_;
};

}  // namespace tenon::testing
