// What `tenon serve` puts around every role: who may call it, and what is seen of it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "client/cli/commands/services.h"
#include "client/rpc/node.h"
#include "client/security/credentials.h"
#include "core/base/status.h"
#include "proto/convert/jobs.h"

namespace tenon::coordinator {
struct ServeOptions;
}  // namespace tenon::coordinator
namespace tenon::optimizer {
struct ServeOptions;
}  // namespace tenon::optimizer
namespace tenon::store {
struct ServeOptions;
}  // namespace tenon::store
namespace tenon::verifier {
struct ServeOptions;
}  // namespace tenon::verifier

namespace tenon::cli {

// Tokens and certificates of a server. The token file is read again when it has changed, at most
// once a second; one that has become unreadable or wrong leaves the tokens as they were.
class Security {
 public:
  // InvalidArgument, NotFound: names the file.
  static StatusOr<Security> Read(const ServeOptions& options);
  // When tokens are asked for: a fresh one for the roles of this process, which is added to the
  // table and, unless `token` is set, put there.
  void AddOwnToken(std::string& token);
  // Null: open.
  StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials() const;

 private:
  struct Tokens;
  security::ServerSecurity files_;
  std::shared_ptr<Tokens> tokens_;  // Null: none are asked for.
};

std::string_view NameOf(rpc::NodeEvent::Kind kind);

// Adds what the id of a job or a task says: "job", and of a task "task", "shard" or "round".
void AddTask(const std::string& id, Console::Fields& fields);

// What a job would take, for the coordinator. Errors of worker::EstimateEnumeration.
StatusOr<convert::JobEstimate> EstimateJob(const convert::JobSpec& spec);

// Metrics, the registry and the web page. Outlives the roles. Thread-safe.
class Observed {
 public:
  explicit Observed(Console& console);
  ~Observed();
  // Nothing to do when `listen` is empty. Unavailable: the port cannot be bound.
  Status Start(const std::string& listen, std::string_view role);
  // Counts an event of a node.
  void OnNode(std::string_view role, const rpc::NodeEvent& event);
  // Puts the registry beside a coordinator, and sees what roles do.
  void Observe(coordinator::ServeOptions& options, std::chrono::milliseconds transfer_limit);
  void Observe(store::ServeOptions& options);
  void Observe(verifier::ServeOptions& options);
  void Observe(optimizer::ServeOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::cli
