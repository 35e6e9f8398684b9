// The coordinator's web page: plain HTML, read-only, without scripts; nothing is loaded from
// elsewhere. Pure: values in, text out.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/registry/pack_file.h"
#include "proto/convert/jobs.h"

namespace tenon::cli {

struct PageNode {
  std::string id, role, address;
  bool draining = false;
  std::uint32_t leases = 0;
  double seen_seconds_ago = 0;
};
struct PagePack {
  std::string reference;  // "name@1.0.0"
  std::string address, signer;
  std::uint64_t rules = 0;
  std::vector<std::string> channels;
};

// `text` with the characters that mean something in HTML replaced.
std::string Escaped(std::string_view text);

// "/": jobs, newest first, nodes and packs. It loads itself anew every few seconds.
std::string OverviewPage(std::span<const convert::Job> jobs, std::span<const PageNode> nodes,
                         std::span<const PagePack> packs);
// "/jobs/ID"
std::string JobPage(const convert::Job& job);
// "/packs/NAME@VERSION": each rule as text and as a picture.
std::string PackPage(const registry::PackFile& pack);

}  // namespace tenon::cli
