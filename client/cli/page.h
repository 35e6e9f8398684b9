// The pages of a coordinator: read-only HTML without scripts, that loads nothing from elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/registry/pack_file.h"
#include "coordinator/board/figures.h"
#include "proto/convert/jobs.h"

namespace tenon::cli {

struct PageNode {
  std::string id, role, address, version;
  bool draining = false;
  bool silent = false;
  std::uint32_t leases = 0;
  double seen_seconds_ago = 0;
};
struct PagePack {
  std::string reference;  // "name@1.0.0"
  std::string address, signer;
  std::uint64_t rules = 0;
  std::vector<std::string> channels;
};
struct PageOverview {
  convert::UnixTime now;
  std::vector<convert::Job> jobs;  // Newest first.
  bool more_jobs = false;          // There are older ones.
  std::vector<PageNode> nodes;
  std::vector<PagePack> packs;
  board::Figures figures;
};

// "/". It loads itself anew every few seconds.
std::string OverviewPage(const PageOverview& overview);
// "/jobs/ID". Likewise, until the job has ended.
std::string JobPage(const convert::Job& job, convert::UnixTime now);
// "/packs/NAME@VERSION": each rule as a picture and as text.
std::string PackPage(const registry::PackFile& pack);

// How long a job that enumerates will go on with that, by what it has done so far; negative: not
// known.
double SecondsLeft(const convert::Job& job, convert::UnixTime now);

}  // namespace tenon::cli
