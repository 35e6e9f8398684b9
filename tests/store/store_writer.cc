// Writes runs into a store and says on stdout which of them are acknowledged, until it is killed.
// usage: store_writer DIRECTORY FIRST_SHARD
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "store/run.h"

namespace {

// Shard s has records that s determines.
std::vector<tenon::store::Record> RecordsOf(std::uint32_t shard) {
  tenon::base::SplitMix64 random(shard);
  std::vector<tenon::store::Record> records;
  for (int k = 0; k < 500; ++k) records.push_back({{random.Next(), random.Next()}, shard});
  return records;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto store = tenon::store::Store::Open(argv[1]);
  if (!store.ok()) {
    fmt::print(stderr, "{}\n", tenon::base::Message(store.status()));
    return 1;
  }
  for (auto shard = std::uint32_t(std::atol(argv[2]));; ++shard) {
    std::vector<tenon::store::Record> records = RecordsOf(shard);
    if (!tenon::store::PutRuns(**store, {1, 4}, shard, records).ok()) return 1;
    fmt::print("{}\n", shard);
    std::fflush(stdout);
  }
}
