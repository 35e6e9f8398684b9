// Connection: a channel to a server, with what every call of tenon.v1 needs: keep-alive, message
// limits, credentials, a deadline and repetition while the server cannot be reached.
//
// A server may have several endpoints of which one serves at a time (a leader and its standbys).
// Then calls go to the one that served last. When it cannot be reached, or says that it does not
// lead, calls move on to the leader it names, if that is one of the endpoints, else to the next
// one; those under way at the old one are cancelled and repeated there.
//
// Every call that changes something carries a request id, so repeating it is harmless; typed
// clients (job_client.h, work_client.h, ..) are made of this.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "core/base/status.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace tenon::rpc {

using Milliseconds = std::chrono::milliseconds;

inline constexpr int kMessageBytesMax = 4 << 20;

// The reason of UNAVAILABLE from a standby (proto/convert/status.h), and the metadata that names
// the leader's endpoint, if it is known.
inline constexpr const char* kNotLeader = "NOT_LEADER";
inline constexpr const char* kLeaderKey = "leader";

// How a client says who it is. All empty: an open connection, for one machine and tests.
struct Credentials {
  std::string token;  // Sent as "authorization: Bearer TOKEN".
  bool tls = false;
  // PEM texts, not paths; used with tls. No root: those of the system.
  std::string root_certificates;
  std::string certificate;  // With `key`: mutual TLS.
  std::string key;
  std::string server_name;  // Expected in the server's certificate; empty: the endpoint's host.
};

// Pauses between attempts: initial * factor^n, at most `max`, each times a random part in
// [1/2, 1]. Ends when the deadline of the whole is over.
struct Backoff {
  Milliseconds initial{50};
  double factor = 2;
  Milliseconds max{2000};
};

struct ConnectionOptions {
  Credentials credentials;
  Backoff backoff;
  Milliseconds keepalive{20'000};
  // How long one attempt may take before the next endpoint is tried; zero: half of a call's limit
  // where there are several endpoints and the call is a quick one, else all of it.
  Milliseconds attempt{0};
  int receive_bytes_max = kMessageBytesMax;
};

// The usual limits for a call as a whole, repetitions included.
inline constexpr Milliseconds kQuickCall{10'000};
inline constexpr Milliseconds kSlowCall{120'000};  // Compaction, verification.

// Thread-safe.
class Connection {
 public:
  // `endpoints`: one, or several with commas in between, 16 at most. Does not connect yet.
  // InvalidArgument: one is not HOST:PORT or unix:PATH, or a token would go over an open connection
  // to another machine.
  static StatusOr<std::shared_ptr<Connection>> Open(const std::string& endpoints,
                                                    const ConnectionOptions& options = {});
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // As given to Open.
  const std::string& endpoint() const;
  // To where calls go now.
  const std::shared_ptr<grpc::Channel>& channel() const;

  // One attempt of a call; it uses the context, which has a deadline and credentials, and asks for
  // channel() itself, since the endpoint may have changed since the last attempt.
  using Attempt = std::function<grpc::Status(grpc::ClientContext& context)>;
  // Repeats `attempt` until it succeeds, fails for good (convert::IsRetriable), `limit` is over or
  // `stop` is requested (CANCELLED). An attempt in flight is cancelled by `stop`, too. Errors have
  // the endpoint in front.
  Status Call(Milliseconds limit, const Attempt& attempt, std::stop_token stop = {}) const;

  // The pause before another attempt: `time`, or less if the server was away and can be reached
  // again. Between calls nobody else makes gRPC's connection attempts go on.
  void PauseFor(Milliseconds time, const std::stop_token& stop) const;

  // For streams: credentials and a deadline (zero: none).
  void Prepare(grpc::ClientContext& context, Milliseconds limit) const;

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  // One attempt at one endpoint, and where the next one is to go.
  Status Try(Milliseconds limit, const Attempt& attempt, const std::stop_token& stop) const;
  std::unique_ptr<Impl> impl_;
};

// `address`, with this port in place of port 0.
std::string WithPort(const std::string& address, int port);

// A fresh request id: 128 random bits, hexadecimal.
std::string NewRequestId();

}  // namespace tenon::rpc
