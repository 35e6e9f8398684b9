#include "store/store.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/raw.h"
#include "tests/support/process.h"

namespace tenon::store {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Store> Opened(const std::string& directory) {
  auto store = Store::Open(directory);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

TEST(StoreTest, WhatIsPutIsThereAfterReopening) {
  const testing::TempFolder folder;
  {
    const auto store = Opened(folder / "db");
    ASSERT_TRUE(store->Put(Family::kVerdicts, "k1", "v1").ok());
    ASSERT_TRUE(store->Put(Family::kPacks, "k1", "other").ok());
    ASSERT_TRUE(store->Put(Family::kVerdicts, std::string("\0k", 2), "").ok());
    ASSERT_TRUE(store->Put(Family::kVerdicts, "gone", "x").ok());
    ASSERT_TRUE(store->Delete(Family::kVerdicts, "gone").ok());
    ASSERT_TRUE(store->Delete(Family::kVerdicts, "never").ok());
  }
  const auto store = Opened(folder / "db");
  EXPECT_EQ(**store->Get(Family::kVerdicts, "k1"), "v1");
  EXPECT_EQ(**store->Get(Family::kPacks, "k1"), "other");
  EXPECT_EQ(**store->Get(Family::kVerdicts, std::string("\0k", 2)), "");
  EXPECT_EQ(*store->Get(Family::kVerdicts, "gone"), std::nullopt);
  EXPECT_EQ(*store->Verify(), 3u);
}

// The vector of docs/formats/store.md.
TEST(StoreTest, ValueOnDiskIsPayloadAndChecksum) {
  const testing::TempFolder folder;
  ASSERT_TRUE(Opened(folder / "db")->Put(Family::kJobs, "k", "tenon").ok());
  const std::string raw = ReadRaw(folder / "db", "jobs", "k");
  EXPECT_EQ(raw, std::string("tenon\x2d\xed\x3a\xb0\x3a\xbf\xec\xc0", 13));
  EXPECT_EQ(ReadRaw(folder / "db", "default", "format"), "tenon store 1");
}

TEST(StoreTest, ScanVisitsAPrefixInByteOrder) {
  const testing::TempFolder folder;
  const auto store = Opened(folder / "db");
  for (const char* key : {"b/2", "a", "b/1", "c", "b/10"}) {
    ASSERT_TRUE(store->Put(Family::kCosts, key, key).ok());
  }
  std::vector<std::string> keys;
  const Store::Visit collect = [&](std::string_view key, std::string_view value) {
    EXPECT_EQ(key, value);
    keys.emplace_back(key);
    return OkStatus();
  };
  ASSERT_TRUE(store->Scan(Family::kCosts, "b/", collect).ok());
  EXPECT_THAT(keys, ElementsAre("b/1", "b/10", "b/2"));
  EXPECT_EQ(store
                ->Scan(Family::kCosts, "",
                       [](std::string_view, std::string_view) { return base::Internal("stop"); })
                .code(),
            absl::StatusCode::kInternal);
  ASSERT_TRUE(store->DeletePrefix(Family::kCosts, "b/").ok());
  keys.clear();
  ASSERT_TRUE(store->Scan(Family::kCosts, "", collect).ok());
  EXPECT_THAT(keys, ElementsAre("a", "c"));
}

TEST(StoreTest, BatchIsMadeAsAWhole) {
  const testing::TempFolder folder;
  const auto store = Opened(folder / "db");
  ASSERT_TRUE(store->Put(Family::kJobs, "old", "1").ok());
  Batch batch;
  EXPECT_TRUE(batch.empty());
  batch.Put(Family::kJobs, "new", "2");
  batch.Put(Family::kClasses, "new", "3");
  batch.Delete(Family::kJobs, "old");
  ASSERT_TRUE(store->Write(batch).ok());
  EXPECT_EQ(*store->Get(Family::kJobs, "old"), std::nullopt);
  EXPECT_EQ(**store->Get(Family::kJobs, "new"), "2");
  EXPECT_EQ(**store->Get(Family::kClasses, "new"), "3");
}

TEST(StoreTest, SecondOpeningIsRefusedAndSaysWhy) {
  const testing::TempFolder folder;
  const auto store = Opened(folder / "db");
  const auto second = Store::Open(folder / "db");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  EXPECT_THAT(base::Message(second.status()),
              AllOf(HasSubstr(folder / "db"), HasSubstr("another process has it open")));
}

TEST(StoreTest, MissingStoreIsNotFoundUnlessWanted) {
  const testing::TempFolder folder;
  EXPECT_EQ(Store::Open(folder / "none", {.create = false}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
  EXPECT_EQ(Store::Open("/dev/null/x").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StoreTest, ChangedValueIsDataLossThatNamesTheKey) {
  const testing::TempFolder folder;
  {
    const auto store = Opened(folder / "db");
    ASSERT_TRUE(store->Put(Family::kVerdicts, "k", "proved").ok());
    ASSERT_TRUE(store->Put(Family::kVerdicts, "l", "refuted").ok());
  }
  std::string raw = ReadRaw(folder / "db", "verdicts", "k");
  raw[0] ^= 1;
  WriteRaw(folder / "db", "verdicts", "k", raw);
  WriteRaw(folder / "db", "verdicts", "l", "short");
  const auto store = Opened(folder / "db");
  for (const char* key : {"k", "l"}) {
    const auto value = store->Get(Family::kVerdicts, key);
    EXPECT_EQ(value.status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_THAT(base::Message(store->Get(Family::kVerdicts, "k").status()),
              AllOf(HasSubstr("verdicts"), HasSubstr("key 6b"), HasSubstr("restore a backup")));
  EXPECT_EQ(store->Verify().status().code(), absl::StatusCode::kDataLoss);
}

TEST(StoreTest, OtherFormatIsRefusedByName) {
  const testing::TempFolder folder;
  Opened(folder / "db");
  WriteRaw(folder / "db", "default", "format", "tenon store 2");
  const auto store = Store::Open(folder / "db");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::Message(store.status()),
              AllOf(HasSubstr("'tenon store 2'"), HasSubstr("'tenon store 1'")));
}

TEST(StoreTest, DamagedFilesAreAnErrorAndNoCrash) {
  const testing::TempFolder folder;
  {
    const auto store = Opened(folder / "db");
    ASSERT_TRUE(store->Put(Family::kVerdicts, "k", "proved").ok());
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "db")) {
    if (entry.path().filename().string().starts_with("MANIFEST")) {
      std::filesystem::resize_file(entry.path(), 5);
    }
  }
  const auto store = Store::Open(folder / "db");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << store.status();
}

TEST(StoreTest, TemporaryStoreGoesAway) {
  const testing::TempFolder folder;
  std::string directory;
  {
    const auto store = Store::OpenTemporary(folder.path());
    ASSERT_TRUE(store.ok()) << store.status();
    directory = (*store)->directory();
    EXPECT_TRUE(std::filesystem::exists(directory));
    ASSERT_TRUE((*store)->Put(Family::kFingerprints, "k", std::string(1 << 20, 'x')).ok());
    EXPECT_EQ((*store)->Get(Family::kFingerprints, "k")->value().size(), std::size_t{1} << 20);
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_EQ(Store::OpenTemporary("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StoreTest, NumbersInKeysSortAsNumbers) {
  std::string last;
  for (const std::uint64_t v : {0ull, 1ull, 255ull, 256ull, 1ull << 40, ~0ull}) {
    std::string key;
    AppendU64(key, v);
    EXPECT_EQ(ReadU64(key), v);
    EXPECT_TRUE(last.empty() || last < key);
    last = key;
  }
  std::string key;
  AppendU32(key, 0x01020304);
  EXPECT_EQ(key, "\x01\x02\x03\x04");
  EXPECT_EQ(ReadU32(key), 0x01020304u);
}

}  // namespace
}  // namespace tenon::store
