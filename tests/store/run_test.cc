#include "store/run.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::store {
namespace {

using ::testing::HasSubstr;

std::string Hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

StatusOr<std::vector<Record>> Decode(std::string_view bytes) {
  ASSIGN_OR_RETURN(RunReader reader, RunReader::Open(bytes));
  std::vector<Record> out;
  while (reader.remaining() > 0) {
    ASSIGN_OR_RETURN(const Record r, reader.Next());
    out.push_back(r);
  }
  return out;
}

// The test vectors of docs/formats/store.md. Bytes on disk are for ever: a change here needs a new
// version.
TEST(RunTest, BytesOfTheDocument) {
  EXPECT_EQ(Hex(EncodeRun({})), "0100");
  const std::vector<Record> one{{{0x0102030405060708, 0x1112131415161718}, 5}};
  EXPECT_EQ(Hex(EncodeRun(one)),
            "0101888e98a8c0e0808101"
            "1112131415161718"
            "0a");
  const std::vector<Record> four{{{0, 7}, 300}, {{0, 7}, 301}, {{0, 8}, 2}, {{128, 0}, 2}};
  EXPECT_EQ(Hex(EncodeRun(four)),
            "0104"
            "00"
            "01"
            "0000000000000007"
            "d804"
            "00"
            "00"
            "02"
            "00"
            "01"
            "0000000000000008"
            "d504"
            "8001"
            "0000000000000000"
            "00");
}

std::vector<Record> RandomRecords(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Record> records;
  for (std::size_t k = 0; k < count; ++k) {
    Record r{{random(), random()}, random() % 3 == 0 ? random() : random() % 100000};
    // Members of one class, and fingerprints that agree in their first half only.
    if (k > 0 && random() % 2 == 0) r.fingerprint = records[random() % k].fingerprint;
    if (random() % 8 == 0) r.fingerprint.lo = random();
    if (random() % 50 == 0) r.fingerprint = {random() % 2 == 0 ? 0 : ~std::uint64_t{0}, 0};
    records.push_back(r);
  }
  std::sort(records.begin(), records.end());
  return records;
}

TEST(RunTest, DecodingGivesBackWhatWasEncoded) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<Record> records = RandomRecords(seed, seed);
    const auto back = Decode(EncodeRun(records));
    ASSERT_TRUE(back.ok()) << back.status() << " seed " << seed;
    EXPECT_EQ(*back, records) << "seed " << seed;
  }
}

TEST(RunTest, RecordsArePacked) {
  const std::vector<Record> records = RandomRecords(1, 100000);
  EXPECT_LT(EncodeRun(records).size(), records.size() * 20);
}

TEST(RunTest, EveryTruncationIsNoticed) {
  const std::string bytes = EncodeRun(RandomRecords(3, 40));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(Decode(bytes.substr(0, length)).status().code(), absl::StatusCode::kDataLoss)
        << length;
  }
  EXPECT_FALSE(Decode(bytes + '\0').ok());
}

TEST(RunTest, MalformedBytesAreDataLossAndNeverCrash) {
  EXPECT_FALSE(Decode("").ok());
  EXPECT_FALSE(Decode("\x02").ok());                          // Another version.
  EXPECT_FALSE(Decode(std::string("\x01\x80\x00", 3)).ok());  // A count in long form.
  EXPECT_FALSE(Decode("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").ok());  // An absurd count.
  std::mt19937_64 random(9);
  const std::string good = EncodeRun(RandomRecords(5, 60));
  for (int k = 0; k < 20000; ++k) {
    std::string bad = good;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    const auto records = Decode(bad);  // An error, or sorted records.
    if (records.ok()) {
      EXPECT_TRUE(std::is_sorted(records->begin(), records->end()));
    }
  }
}

class RunTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = Store::OpenTemporary();
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  std::map<base::Fingerprint, std::vector<std::uint64_t>> Classes(const RunTable& table) {
    std::map<base::Fingerprint, std::vector<std::uint64_t>> out;
    base::Fingerprint last;
    bool first = true;
    const Status s = ForEachClass(
        *store_, table, [&](const base::Fingerprint& f, std::span<const std::uint64_t> ids) {
          EXPECT_TRUE(first || last < f);
          first = false;
          last = f;
          out[f].assign(ids.begin(), ids.end());
          return OkStatus();
        });
    EXPECT_TRUE(s.ok()) << s;
    return out;
  }
  std::unique_ptr<Store> store_;
};

TEST_F(RunTableTest, ClassesComeInOrderForAnyBucketsAndShards) {
  const std::vector<Record> records = RandomRecords(11, 3000);
  std::map<base::Fingerprint, std::set<std::uint64_t>> want;
  for (const Record& r : records) want[r.fingerprint].insert(r.id);
  std::uint64_t job = 0;
  for (const int bits : {0, 1, 7, 12}) {
    for (const std::uint32_t shards : {1u, 4u}) {
      const RunTable table{++job, bits};
      std::vector<std::vector<Record>> parts(shards);
      for (const Record& r : records) parts[r.id % shards].push_back(r);
      for (std::uint32_t shard = 0; shard < shards; ++shard) {
        std::vector<Record> part = parts[shard];
        ASSERT_TRUE(PutRuns(*store_, table, shard, part).ok());
      }
      // Doubled runs change nothing.
      std::shuffle(parts[0].begin(), parts[0].end(), std::mt19937(3));
      ASSERT_TRUE(PutRuns(*store_, table, 0, parts[0]).ok());
      const auto classes = Classes(table);
      ASSERT_EQ(classes.size(), want.size());
      for (const auto& [f, ids] : want) {
        EXPECT_EQ(classes.at(f), std::vector<std::uint64_t>(ids.begin(), ids.end()));
      }
    }
  }
}

TEST_F(RunTableTest, JobsAreApartAndCanBeDropped) {
  std::vector<Record> a{{{1, 2}, 3}}, b{{{1, 2}, 4}};
  ASSERT_TRUE(PutRuns(*store_, {1, 3}, 0, a).ok());
  ASSERT_TRUE(PutRuns(*store_, {2, 3}, 0, b).ok());
  EXPECT_EQ((Classes({1, 3}).at({1, 2})), (std::vector<std::uint64_t>{3}));
  ASSERT_TRUE(DropRuns(*store_, {1, 3}).ok());
  EXPECT_TRUE(Classes({1, 3}).empty());
  EXPECT_EQ(Classes({2, 3}).size(), 1u);
}

TEST_F(RunTableTest, MalformedRunIsNamedByBucketAndShard) {
  std::string key;
  AppendU64(key, 1);
  AppendU32(key, 6);
  AppendU32(key, 9);
  ASSERT_TRUE(store_->Put(Family::kFingerprints, key, "\x01\x05").ok());
  const Status s = ForEachClass(
      *store_, {1, 3},
      [](const base::Fingerprint&, std::span<const std::uint64_t>) { return OkStatus(); });
  EXPECT_EQ(s.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(base::Message(s), HasSubstr("bucket 6, shard 9"));
}

TEST(RunTest, RunsHoldAbout64KiB) {
  EXPECT_EQ(BucketBits(41436, 1), 3);
  EXPECT_EQ(BucketBits(100, 1), 0);
  EXPECT_EQ(BucketBits(0, 0), 0);
  EXPECT_EQ(BucketBits(41436, 64), 0);
  const std::uint64_t many = 400000000;
  for (const std::uint64_t shards : {1u, 16u, 1000u}) {
    const std::uint64_t run = many / shards * 19 >> BucketBits(many, shards);
    EXPECT_GE(run, 64u << 10);
    EXPECT_LT(run, 128u << 10);
  }
}

}  // namespace
}  // namespace tenon::store
