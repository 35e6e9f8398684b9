#include "store/raw.h"

#include <memory>
#include <vector>

#include <rocksdb/db.h>

#include "core/base/check.h"

namespace tenon::store {
namespace {

template <class Use>
void With(const std::string& directory, const std::string& family, Use use) {
  std::vector<std::string> names;
  CHECK(rocksdb::DB::ListColumnFamilies({}, directory, &names).ok());
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& n : names) families.emplace_back(n, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* raw = nullptr;
  CHECK(rocksdb::DB::Open({}, directory, families, &handles, &raw).ok());
  const std::unique_ptr<rocksdb::DB> db(raw);
  bool found = false;
  for (rocksdb::ColumnFamilyHandle* h : handles) {
    if (h->GetName() == family) {
      CHECK(use(*db, h).ok());
      found = true;
    }
    db->DestroyColumnFamilyHandle(h);
  }
  CHECK(found);
}

}  // namespace

std::string ReadRaw(const std::string& directory, const std::string& family,
                    const std::string& key) {
  std::string value;
  With(directory, family,
       [&](rocksdb::DB& db, rocksdb::ColumnFamilyHandle* h) { return db.Get({}, h, key, &value); });
  return value;
}

void WriteRaw(const std::string& directory, const std::string& family, const std::string& key,
              const std::string& bytes) {
  With(directory, family,
       [&](rocksdb::DB& db, rocksdb::ColumnFamilyHandle* h) { return db.Put({}, h, key, bytes); });
}

}  // namespace tenon::store
