#include "tests/support/etcd.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "core/base/check.h"

namespace tenon::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};

// Ports that nobody has; all of them are held until they are known, so that they differ.
std::vector<std::string> FreeAddresses(int count) {
  std::vector<int> sockets;
  std::vector<std::string> out;
  for (int k = 0; k < count; ++k) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    CHECK(::bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    out.push_back("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  }
  for (const int socket : sockets) ::close(socket);
  return out;
}

}  // namespace

Etcd::Etcd(int members, std::vector<std::string> flags, EtcdTls tls)
    : flags_(std::move(flags)),
      tls_(std::move(tls)),
      scheme_(tls_.key.empty() ? "http://" : "https://") {
  if (!tls_.key.empty()) {
    flags_.insert(flags_.end(), {"--client-cert-auth", "--trusted-ca-file", tls_.authority,
                                 "--cert-file", tls_.certificate, "--key-file", tls_.key});
  }
  const std::vector<std::string> addresses = FreeAddresses(2 * members);
  for (int k = 0; k < members; ++k) {
    members_.push_back(
        {.client = addresses[std::size_t(2 * k)], .peer = addresses[std::size_t(2 * k) + 1]});
  }
  for (int k = 0; k < members; ++k) Start(k);
  for (int k = 0; k < members; ++k) AwaitHealth(k);
}

std::string Etcd::Curl(const std::string& url, std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"curl", "--silent", "--max-time", "10"});
  if (!tls_.key.empty()) {
    arguments.insert(arguments.end(),
                     {"--cacert", tls_.authority, "--cert", tls_.certificate, "--key", tls_.key});
  }
  arguments.push_back(url);
  return Run(arguments).out;
}

std::string Etcd::endpoint(int member) const { return members_[std::size_t(member)].client; }

std::string Etcd::endpoints() const {
  std::string out;
  for (const Member& member : members_) out += (out.empty() ? "" : ",") + member.client;
  return out;
}

void Etcd::Start(int member) {
  Member& m = members_[std::size_t(member)];
  CHECK(m.process == nullptr);
  std::string all;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    all += (k == 0 ? "m" : ",m") + std::to_string(k) + "=http://" + members_[k].peer;
  }
  const std::string name = "m" + std::to_string(member);
  // It says nothing on stdout; a first line is what Daemon waits for.
  std::vector<std::string> command{"sh",
                                   "-c",
                                   "echo started; exec etcd \"$@\" 2>>\"$0\"",
                                   folder_ / (name + ".log"),
                                   "--name",
                                   name,
                                   "--data-dir",
                                   folder_ / name,
                                   "--listen-client-urls",
                                   scheme_ + m.client,
                                   "--advertise-client-urls",
                                   scheme_ + m.client,
                                   "--listen-peer-urls",
                                   "http://" + m.peer,
                                   "--initial-advertise-peer-urls",
                                   "http://" + m.peer,
                                   "--initial-cluster",
                                   all};
  command.insert(command.end(), flags_.begin(), flags_.end());
  m.process = std::make_unique<Daemon>(command);
}

void Etcd::Kill(int member) { members_[std::size_t(member)].process.reset(); }

void Etcd::Signal(int member, int signal) { members_[std::size_t(member)].process->Signal(signal); }

void Etcd::AwaitHealth(int member) const {
  const auto end = Clock::now() + kPatience;
  const std::string url = scheme_ + endpoint(member) + "/health";
  while (Curl(url).find("\"true\"") == std::string::npos) {
    if (Clock::now() > end || members_[std::size_t(member)].process->has_ended()) {
      const std::string log = folder_ / ("m" + std::to_string(member) + ".log");
      std::fputs(ReadFile(log).c_str(), stderr);
      const bool is_healthy = false;
      CHECK(is_healthy);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int Etcd::Leader() const {
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    for (int k = 0; k < members(); ++k) {
      if (members_[std::size_t(k)].process == nullptr) continue;
      const std::string metrics = Curl(scheme_ + endpoint(k) + "/metrics");
      if (metrics.find("\netcd_server_is_leader 1") != std::string::npos) return k;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const bool one_leads = false;
  CHECK(one_leads);
  return 0;
}

std::string Etcd::Post(const std::string& path, const std::string& json) const {
  return Curl(scheme_ + members_.front().client + path, {"--data", json});
}

}  // namespace tenon::testing
