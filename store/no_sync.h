// A file system that never waits for the disk: for stores that are removed with the process.
#pragma once

#include <memory>

#include <rocksdb/env.h>

namespace tenon::store {

// RocksDB's default environment, without fsync.
std::unique_ptr<rocksdb::Env> NoSyncEnv();

}  // namespace tenon::store
