#include "client/cli/commands/serving.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "client/cli/files.h"
#include "proto/convert/universe.h"
#include "worker/estimate.h"

namespace tenon::cli {

struct Security::Tokens {
  using Clock = std::chrono::steady_clock;

  explicit Tokens(std::string file) : path(std::move(file)) {}

  Status Load() {
    ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    ASSIGN_OR_RETURN(const security::TokenTable read, security::TokenTable::Parse(text, path));
    std::vector<security::Token> all = read.tokens();
    if (!own.sha256.empty()) all.push_back(own);
    table = std::make_shared<const security::TokenTable>(std::move(all));
    return OkStatus();
  }
  static std::pair<std::int64_t, std::int64_t> ChangedAt(const std::string& path) {
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0) return {0, 0};
    return {s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
  }

  std::shared_ptr<const security::TokenTable> Get() {
    const std::lock_guard lock(mutex);
    const auto now = Clock::now();
    if (now - looked < std::chrono::seconds(1)) return table;
    looked = now;
    if (const auto changed = ChangedAt(path); changed != loaded) {
      loaded = changed;
      Load().IgnoreError();  // Half edited: what was accepted before still is.
    }
    return table;
  }

  const std::string path;
  std::mutex mutex;
  std::shared_ptr<const security::TokenTable> table;
  security::Token own;
  Clock::time_point looked = Clock::now();
  std::pair<std::int64_t, std::int64_t> loaded = ChangedAt(path);
};

StatusOr<Security> Security::Read(const ServeOptions& options) {
  Security out;
  const auto read = [](const std::string& path, std::string& text) -> Status {
    if (path.empty()) return OkStatus();
    ASSIGN_OR_RETURN(text, ReadText(path));
    return OkStatus();
  };
  RETURN_IF_ERROR(read(options.tls_certificate, out.files_.certificate));
  RETURN_IF_ERROR(read(options.tls_key, out.files_.key));
  RETURN_IF_ERROR(read(options.tls_client_root, out.files_.client_root));
  if (!options.token_file.empty()) {
    out.tokens_ = std::make_shared<Tokens>(options.token_file);
    RETURN_IF_ERROR(out.tokens_->Load());
    out.files_.tokens = [tokens = out.tokens_] { return tokens->Get(); };
  }
  RETURN_IF_ERROR(out.Credentials().status());
  return out;
}

void Security::AddOwnToken(std::string& token) {
  if (!tokens_ || !token.empty()) return;
  token = security::NewSecret();
  const std::lock_guard lock(tokens_->mutex);
  tokens_->own = {.name = "this-process",
                  .sha256 = security::HashOf(token),
                  .roles = static_cast<security::Roles>(security::Role::kNode) |
                           static_cast<security::Roles>(security::Role::kRead)};
  std::vector<security::Token> all = tokens_->table->tokens();
  all.push_back(tokens_->own);
  tokens_->table = std::make_shared<const security::TokenTable>(std::move(all));
}

StatusOr<std::shared_ptr<grpc::ServerCredentials>> Security::Credentials() const {
  return security::MakeServerCredentials(files_);
}

std::string_view NameOf(rpc::NodeEvent::Kind kind) {
  using Kind = rpc::NodeEvent::Kind;
  switch (kind) {
    case Kind::kLeased:
      return "task leased";
    case Kind::kCompleted:
      return "task completed";
    case Kind::kUnneeded:
      return "task was done already";
    case Kind::kReleased:
      return "task given back";
    case Kind::kLost:
      return "lease lost";
    case Kind::kTrouble:
      return "trouble";
  }
  return "event";
}

// "j7/shard/3", "j7/collect", "j7/proofs/2/5": job, kind, numbers.
void AddTask(const std::string& id, Console::Fields& fields) {
  if (id.empty()) return;
  const std::size_t slash = id.find('/');
  if (slash != std::string::npos) fields.emplace_back("task", id);
  fields.emplace_back("job", id.substr(0, slash));
  const std::string rest = slash == std::string::npos ? "" : id.substr(slash + 1);
  if (rest.starts_with("shard/")) fields.emplace_back("shard", rest.substr(6));
  if (rest.starts_with("proofs/")) {
    fields.emplace_back("round", rest.substr(7, rest.find('/', 7) - 7));
  }
}

StatusOr<convert::JobEstimate> EstimateJob(const convert::JobSpec& spec) {
  ASSIGN_OR_RETURN(const graph::Universe universe,
                   convert::ParseUniverse(spec.universe, "universe"));
  worker::EnumerateOptions how;
  how.max_operators = spec.max_operators;
  how.mode = spec.mode == convert::EnumerationMode::kCanonical ? worker::Mode::kCanonical
                                                               : worker::Mode::kExhaustive;
  how.shards = std::max(1U, spec.shards);
  ASSIGN_OR_RETURN(const worker::EnumerationEstimate e, worker::EstimateEnumeration(universe, how));
  return convert::JobEstimate{.graphs = e.graphs,
                              .cpu_ms = e.cpu_seconds * 1000,
                              .memory_bytes = e.memory_bytes,
                              .disk_bytes = e.record_bytes,
                              .extrapolated = e.extrapolated};
}

}  // namespace tenon::cli
