// RocksDB syncs its manifest and directories whatever the write options say. Opening a store with
// nine families is some 40 fsyncs, a quarter of a second on a slow disk.
#include "store/no_sync.h"

#include <rocksdb/file_system.h>

namespace tenon::store {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class File : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
};

class Directory : public rocksdb::FSDirectory {
 public:
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
};

class FileSystem : public rocksdb::FileSystemWrapper {
 public:
  FileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "TenonNoSync"; }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> opened;
    const IOStatus s = target()->NewWritableFile(name, options, &opened, debug);
    if (s.ok()) *file = std::make_unique<File>(std::move(opened));
    return s;
  }
  IOStatus NewDirectory(const std::string&, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext*) override {
    *directory = std::make_unique<Directory>();
    return IOStatus::OK();
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> NoSyncEnv() {
  return rocksdb::NewCompositeEnv(std::make_shared<FileSystem>());
}

}  // namespace tenon::store
