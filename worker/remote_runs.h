// The stores of a cluster as the place where runs go and come from: each bucket has its owner
// (convert::StoreMap).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "client/rpc/run_writer.h"
#include "client/rpc/store_client.h"
#include "proto/convert/work.h"
#include "store/run.h"

namespace tenon::worker {

// Connections to stores, opened once each. Thread-compatible.
class StoreConnections {
 public:
  explicit StoreConnections(rpc::ConnectionOptions options) : options_(std::move(options)) {}
  // InvalidArgument: an endpoint that is none.
  StatusOr<std::vector<std::shared_ptr<rpc::Connection>>> Open(const convert::StoreMap& map);

 private:
  rpc::ConnectionOptions options_;
  std::vector<std::shared_ptr<rpc::Connection>> open_;
};

// The store that owns a bucket.
std::size_t OwnerOf(const convert::StoreMap& map, std::uint32_t bucket);

// Thread-compatible.
class RemoteSink final : public store::RunSink {
 public:
  // `patience`: see rpc::RunWriter.
  RemoteSink(convert::StoreMap map, const std::vector<std::shared_ptr<rpc::Connection>>& stores,
             rpc::Milliseconds patience, const std::stop_token& stop);
  Status Put(const store::RunTable& table, const store::RunKey& key, std::string run) override;
  Status Sync() override;

 private:
  convert::StoreMap map_;
  std::vector<std::unique_ptr<rpc::RunWriter>> writers_;  // By store.
};

// Thread-compatible.
class RemoteSource final : public store::RunSource {
 public:
  // Has the runs of the buckets [first, end) only.
  RemoteSource(convert::StoreMap map, std::vector<std::shared_ptr<rpc::Connection>> stores,
               rpc::Milliseconds patience, std::stop_token stop, std::uint32_t first,
               std::uint32_t end);
  Status ForEachRun(const store::RunTable& table, const Visit& visit) const override;
  std::string name() const override { return "stores"; }

 private:
  convert::StoreMap map_;
  std::vector<std::shared_ptr<rpc::Connection>> stores_;
  rpc::Milliseconds patience_;
  std::stop_token stop_;
  std::uint32_t first_, end_;
};

}  // namespace tenon::worker
