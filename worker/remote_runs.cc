#include "worker/remote_runs.h"

#include <algorithm>

#include "core/base/check.h"

namespace tenon::worker {
namespace {

// Store k of n has the buckets [k*2^bits/n, (k+1)*2^bits/n).
std::uint32_t FirstOf(const convert::StoreMap& map, std::size_t store) {
  const std::uint64_t buckets = std::uint64_t{1} << map.bucket_bits;
  return std::uint32_t(store * buckets / map.endpoints.size());
}

}  // namespace

StatusOr<std::vector<std::shared_ptr<rpc::Connection>>> StoreConnections::Open(
    const convert::StoreMap& map) {
  std::vector<std::shared_ptr<rpc::Connection>> out;
  for (const std::string& endpoint : map.endpoints) {
    const auto known = std::ranges::find_if(
        open_, [&](const auto& connection) { return connection->endpoint() == endpoint; });
    if (known == open_.end()) {
      ASSIGN_OR_RETURN(auto connection, rpc::Connection::Open(endpoint, options_));
      open_.push_back(connection);
      out.push_back(std::move(connection));
    } else {
      out.push_back(*known);
    }
  }
  return out;
}

std::size_t OwnerOf(const convert::StoreMap& map, std::uint32_t bucket) {
  CHECK(bucket >> map.bucket_bits == 0);
  std::size_t store = 0;
  while (store + 1 < map.endpoints.size() && FirstOf(map, store + 1) <= bucket) ++store;
  return store;
}

RemoteSink::RemoteSink(convert::StoreMap map,
                       const std::vector<std::shared_ptr<rpc::Connection>>& stores,
                       rpc::Milliseconds patience, const std::stop_token& stop)
    : map_(std::move(map)) {
  for (const auto& connection : stores) {
    writers_.push_back(std::make_unique<rpc::RunWriter>(connection, patience, stop));
  }
}

Status RemoteSink::Put(const store::RunTable& table, const store::RunKey& key, std::string run) {
  CHECK(std::uint32_t(table.bucket_bits) == map_.bucket_bits);
  return writers_[OwnerOf(map_, key.bucket)]->Put({.table = key.job,
                                                   .bucket_bits = map_.bucket_bits,
                                                   .bucket = key.bucket,
                                                   .shard = key.shard,
                                                   .part = key.part,
                                                   .data = std::move(run)});
}

Status RemoteSink::Sync() {
  for (const auto& writer : writers_) RETURN_IF_ERROR(writer->Sync());
  return OkStatus();
}

RemoteSource::RemoteSource(convert::StoreMap map,
                           std::vector<std::shared_ptr<rpc::Connection>> stores,
                           rpc::Milliseconds patience, std::stop_token stop, std::uint32_t first,
                           std::uint32_t end)
    : map_(std::move(map)),
      stores_(std::move(stores)),
      patience_(patience),
      stop_(std::move(stop)),
      first_(first),
      end_(end) {}

Status RemoteSource::ForEachRun(const store::RunTable& table, const Visit& visit) const {
  CHECK(std::uint32_t(table.bucket_bits) == map_.bucket_bits);
  // The stores have ascending ranges of buckets, so one after the other is in order.
  for (std::size_t k = 0; k < stores_.size(); ++k) {
    const rpc::BucketRange range{.table = table.job,
                                 .bucket_bits = map_.bucket_bits,
                                 .first = std::max(FirstOf(map_, k), first_),
                                 .end = std::min(FirstOf(map_, k + 1), end_)};
    if (range.first >= range.end) continue;
    const auto each = [&](const rpc::Run& run) {
      return visit({table.job, run.bucket, run.shard, run.part}, run.data);
    };
    RETURN_IF_ERROR(rpc::StoreClient(stores_[k], patience_).ScanRuns(range, each, stop_));
  }
  return OkStatus();
}

}  // namespace tenon::worker
