// The commands that run services or talk to them, as commands.h says for the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/commands/connect.h"

namespace tenon::cli {

// ---- services

struct ServeOptions {
  std::string role;        // coordinator, store, worker, verifier, optimizer or all.
  std::string listen;      // HOST:PORT; empty: as the role's default. Port 0: any free one.
  std::string advertise;   // HOST:PORT under which others reach it; port 0: the one it listens on.
  std::string data;        // Folder; empty: $XDG_STATE_HOME/tenon or ~/.local/state/tenon.
  std::string token_file;  // Tokens that are accepted; empty: no tokens.
  std::string tls_certificate, tls_key, tls_client_root;
  ConnectOptions coordinator;  // How nodes reach it, and it the stores.
  std::string node_id;         // Empty: kept in `data` for a store, fresh for others.
  std::string stores;          // HOST:PORT,..; empty: those that register.
  std::uint32_t min_stores = 1;
  unsigned slots = 0;  // Tasks at a time of a worker or verifier; 0: as many as CPUs.
  std::uint64_t memory_limit_bytes = 0;  // Of a worker's slot; 0: what the job says.
  std::uint64_t max_graphs = 0;          // Of a job, estimated; 0: no limit.
  std::string key;                       // Signs packs; empty: the user's own.
  std::uint64_t lease_ttl_ms = 15'000;
  // Of a coordinator: HOST:PORT,.. of etcd; empty: what it knows is kept in `data`.
  std::string etcd, etcd_prefix = "/tenon/";
  std::string etcd_root_certificates, etcd_certificate, etcd_key;  // PEM files; given: TLS.
  unsigned etcd_lease_ttl_s = 5;
  std::uint64_t disk_reserve_bytes = std::uint64_t{256} << 20;  // Of a store.
  std::uint64_t transfer_limit_s = 600;                         // Of a pack, an artifact or a scan.
  std::uint64_t keep_jobs = 10'000;
  std::uint64_t keep_jobs_days = 30;
  std::string metrics_listen;  // HOST:PORT of metrics and the web page; empty: none.

  // Of an optimizer; `slots` models at a time, `memory_limit_bytes` for each.
  std::vector<std::string> packs;  // Paths, NAME, NAME@VERSION or NAME@CHANNEL.
  std::string pack_key;            // The public key that must have signed them; empty: anybody's.
  std::uint64_t refresh_s = 300;
  unsigned queue = 64;      // Calls that wait, besides those that run.
  unsigned per_caller = 8;  // Calls of one caller, running and waiting.
  std::uint64_t model_limit_bytes = std::uint64_t{512} << 20;
  std::uint64_t cache_limit_bytes = std::uint64_t{1} << 30;
  double time_limit_max_s = 600;  // Of a search, and of a comparison.
  std::uint64_t drain_s = 120;
  std::string optimizer_listen;  // Of `all`: HOST:PORT; empty: there is no optimizer.
};
// Until a stop is requested; then tasks are given back and calls are finished.
Outcome ServeCommand(Context& context, const ServeOptions& options);

// The child of a verifier: proves what comes over stdin. Hidden.
Outcome InternalProverCommand(Context& context);
// The child of an optimizer: optimizes one model. Hidden.
Outcome InternalOptimizerCommand(Context& context);

// ---- jobs

struct JobSubmitOptions {
  ConnectOptions server;
  EnumerationOptions enumeration;
  std::string name;        // NAME@VERSION; empty: the universe's name and 0.1.0.
  std::string request_id;  // Empty: a fresh one.
  int priority = 0;
  bool wait = false;
  bool dry_run = false;  // Only says what the job would take.
  std::string json;
};
// With `wait`: kNo when the job failed or was cancelled.
Outcome SubmitJobCommand(Context& context, const JobSubmitOptions& options);

struct JobOptions {
  ConnectOptions server;
  std::string id;
  std::string json;
};
Outcome ShowJobCommand(Context& context, const JobOptions& options);
// Until the job has ended, as SubmitJobCommand with `wait`.
Outcome WatchJobCommand(Context& context, const JobOptions& options);

struct JobListOptions {
  ConnectOptions server;
  std::uint32_t limit = 100;
  bool all = false;  // Also those that have ended.
  std::string json;
};
Outcome ListJobsCommand(Context& context, const JobListOptions& options);

struct JobControlOptions {
  ConnectOptions server;
  std::string id;
  std::string action;  // cancel, pause, resume or priority.
  int priority = 0;
};
Outcome ControlJobCommand(Context& context, const JobControlOptions& options);

// ---- stores

struct StoreOptions {
  ConnectOptions server;
  std::string action;      // stats, verify, compact or checkpoint.
  std::string checkpoint;  // The name of the directory.
  std::string json;
};
Outcome StoreCommand(Context& context, const StoreOptions& options);

// ---- tokens

struct TokenCreateOptions {
  std::string file;  // A line is added to it.
  std::string name;
  std::string roles;       // "submit,publish"
  std::uint64_t days = 0;  // Until it expires; 0: never.
};
Outcome CreateTokenCommand(Context& context, const TokenCreateOptions& options);

// ---- packs of a registry

struct PackRemoteOptions {
  ConnectOptions server;
  std::string pack;       // push: a path; pull: NAME, NAME@VERSION or NAME@CHANNEL.
  std::string out;        // pull: a path; empty: the cache.
  std::string channel;    // push: also points this channel at it.
  std::string key;        // pull: the public key that must have signed it.
  bool rollback = false;  // pull: take an older version than the newest one seen.
  std::string json;
};
Outcome PushPackCommand(Context& context, const PackRemoteOptions& options);
Outcome PullPackCommand(Context& context, const PackRemoteOptions& options);
Outcome ListRemotePacksCommand(Context& context, const PackRemoteOptions& options);

}  // namespace tenon::cli
