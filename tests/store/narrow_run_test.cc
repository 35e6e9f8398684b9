#include "store/narrow_run.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::store {
namespace {

using ::testing::HasSubstr;

using Records = std::vector<NarrowRecord>;

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

Records Random(std::mt19937_64& rng, std::size_t count, std::uint64_t range) {
  Records out(count);
  for (NarrowRecord& r : out) r = {rng() % range, rng() >> rng() % 64};
  return out;
}

// The test vectors of docs/formats/store.md. Bytes on disk are for ever: a change here needs a new
// version.
TEST(NarrowRunTest, BytesOfTheDocument) {
  EXPECT_EQ(Hex(EncodeNarrowRun({})),
            "02000000000000"
            "0000000000000000");
  EXPECT_EQ(Hex(EncodeNarrowRun(Records{{0x0102030405060708, 5}})),
            "02000000010001"
            "0102030405060708"
            "05");
  EXPECT_EQ(Hex(EncodeNarrowRun(Records{{7, 1}, {7, 256}, {263, 2}})),
            "02000000030202"
            "0000000000000007"
            "00000100"
            "00000001"
            "00010200");
}

TEST(NarrowRunTest, DecodingGivesWhatWasEncoded) {
  std::mt19937_64 rng(1);
  for (const std::uint64_t range : {std::uint64_t{1}, std::uint64_t{300}, ~std::uint64_t{0}}) {
    for (const std::size_t count : {0u, 1u, 2u, 1000u}) {
      Records records = Random(rng, count, range);
      std::sort(records.begin(), records.end());
      Records out{{1, 2}};
      ASSERT_TRUE(DecodeNarrowRun(EncodeNarrowRun(records), out).ok());
      records.insert(records.begin(), {1, 2});
      EXPECT_EQ(out, records);
    }
  }
}

// Every truncation, and every change of a byte, is told or gives other records: nothing crashes.
TEST(NarrowRunTest, DamageIsToldOrChangesWhatIsRead) {
  const Records records{{7, 1}, {7, 256}, {263, 2}, {1 << 20, 3}};
  const std::string run = EncodeNarrowRun(records);
  for (std::size_t length = 0; length < run.size(); ++length) {
    Records out{{9, 9}};
    EXPECT_FALSE(DecodeNarrowRun(run.substr(0, length), out).ok());
    EXPECT_EQ(out, (Records{{9, 9}}));
  }
  for (std::size_t at = 0; at < run.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = run;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      Records out;
      EXPECT_FALSE(DecodeNarrowRun(damaged, out).ok() && out == records) << at << " " << bit;
    }
  }
}

TEST(NarrowRunTest, SortingIsThatOfTheLibrary) {
  std::mt19937_64 rng(2);
  Records buffer;
  for (const std::uint64_t range :
       {std::uint64_t{3}, std::uint64_t{1} << 30, std::uint64_t{1} << 52, ~std::uint64_t{0}}) {
    for (const std::size_t count : {0u, 1u, 255u, 256u, 70000u}) {
      Records records = Random(rng, count, range);
      Records want = records;
      std::sort(want.begin(), want.end());
      SortNarrow(records, buffer);
      EXPECT_EQ(records, want);
    }
  }
}

// Several shards, a bucket of more than one run, a shard written twice; after opening again.
TEST(NarrowRunTest, BucketsHaveTheRecordsOfAllShards) {
  const std::string folder = testing::TempDir() + "/narrow";
  std::filesystem::remove_all(folder);
  const RunTable table{.job = 5, .bucket_bits = 1};
  std::mt19937_64 rng(3);
  Records all;
  {
    const auto store = Store::Open(folder);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const std::uint32_t shard : {0u, 1u, 1u}) {
      rng.seed(shard);
      const auto writer = NarrowRunWriter::Open(**store, table, shard);
      ASSERT_TRUE(writer.ok()) << writer.status();
      for (const std::uint32_t bucket : {0u, 1u}) {
        Records records = Random(rng, kRunRecordsMax + 10, std::uint64_t{1} << 63);
        for (NarrowRecord& r : records) r.fingerprint |= std::uint64_t{bucket} << 63;
        std::sort(records.begin(), records.end());
        ASSERT_TRUE((*writer)->Put(bucket, records).ok());
        if (shard == 0 || all.size() < 4 * records.size()) {
          all.insert(all.end(), records.begin(), records.end());
        }
      }
      ASSERT_TRUE((*writer)->Finish().ok());
    }
    // What was begun and not finished is not there.
    const auto writer = NarrowRunWriter::Open(**store, table, 7);
    ASSERT_TRUE((*writer)->Put(0, Records{{1, 1}}).ok());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const auto store = Store::Open(folder);
  ASSERT_TRUE(store.ok()) << store.status();
  Records read;
  ASSERT_TRUE(ForEachNarrowBucket(**store, table, [&](std::uint32_t bucket, auto records) {
                for (const NarrowRecord& r : records) EXPECT_EQ(r.fingerprint >> 63, bucket);
                read.insert(read.end(), records.begin(), records.end());
                return OkStatus();
              }).ok());
  EXPECT_EQ(read, all);
  EXPECT_GT((*store)->DiskBytes(Family::kFingerprints), 4 * kRunRecordsMax * 8);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    EXPECT_FALSE(file.path().filename().string().starts_with("bulk-")) << file.path();
  }
}

TEST(NarrowRunTest, ARunOfTheOtherKindIsNamed) {
  const auto store = Store::OpenTemporary();
  ASSERT_TRUE(store.ok()) << store.status();
  const RunTable table{.job = 1, .bucket_bits = 0};
  std::vector<Record> wide{{{1, 2}, 3}};
  ASSERT_TRUE(PutRuns(**store, table, 4, wide).ok());
  const Status s =
      ForEachNarrowBucket(**store, table, [](std::uint32_t, auto) { return OkStatus(); });
  EXPECT_EQ(s.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(base::Message(s), HasSubstr("bucket 0, shard 4"));
}

}  // namespace
}  // namespace tenon::store
