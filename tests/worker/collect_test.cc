// Collecting by parts: however the buckets are cut, the joined classes are those of one process, to
// the byte.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/graph/classes.h"
#include "proto/convert/universe.h"
#include "worker/enumerate.h"

namespace tenon::worker {
namespace {

constexpr store::RunTable kRuns{.job = 1, .bucket_bits = 4};
constexpr std::uint32_t kShards = 3;

// Of another source, the buckets [first, end).
class Part final : public store::RunSource {
 public:
  Part(store::Store& store, std::uint32_t first, std::uint32_t end)
      : store_(store), first_(first), end_(end) {}
  Status ForEachRun(const store::RunTable& table, const Visit& visit) const override {
    return store::ScanRuns(store_, table.job, first_, end_, visit);
  }
  std::string name() const override { return "part"; }

 private:
  store::Store& store_;
  std::uint32_t first_, end_;
};

class CollectTest : public testing::TestWithParam<Mode> {
 protected:
  CollectTest() {
    options_.mode = GetParam();
    options_.max_operators = 3;
    options_.shards = kShards;
    options_.keep_all = false;
    auto e = Prepared();
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      EXPECT_TRUE(e->RunShard(shard, *store_, kRuns).ok());
    }
  }
  std::unique_ptr<Enumerator> Prepared() const {
    auto e = Enumerator::Prepare(universe_, options_);
    EXPECT_TRUE(e.ok()) << e.status();
    return *std::move(e);
  }
  std::string BytesOf(const Enumeration& e) const {
    return graph::EncodeClasses(graph::Fragment(universe_, e.table, e.class_at, e.class_members));
  }

  const graph::Universe universe_ = *convert::LoadUniverse("matrix");
  EnumerateOptions options_;
  const std::unique_ptr<store::Store> store_ = *store::Store::OpenTemporary();
};

TEST_P(CollectTest, HoweverTheBucketsAreCut) {
  const auto whole = std::move(*Prepared()).Collect(*store_, kRuns);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const std::vector<std::uint32_t>& cuts :
       {std::vector<std::uint32_t>{0, 16}, {0, 1, 16}, {0, 5, 6, 11, 16}}) {
    std::vector<FoundClasses> parts;
    const auto collector = Prepared();  // One for all parts: it is left as it was.
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      auto part = collector->CollectPart(Part(*store_, cuts[k], cuts[k + 1]), kRuns);
      ASSERT_TRUE(part.ok()) << part.status();
      const auto decoded = DecodeFound(EncodeFound(*part));
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(*decoded, *part);
      parts.push_back(*decoded);
    }
    std::reverse(parts.begin(), parts.end());
    const auto joined = std::move(*Prepared()).Join(std::move(parts));
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ(joined->graphs, whole->graphs);
    EXPECT_EQ(joined->graphs_by_size, whole->graphs_by_size);
    EXPECT_EQ(joined->classes, whole->classes);
    EXPECT_EQ(joined->equivalent_pairs, whole->equivalent_pairs);
    EXPECT_EQ(joined->split_classes, whole->split_classes);
    EXPECT_EQ(BytesOf(*joined), BytesOf(*whole));
  }
}

TEST_P(CollectTest, AShardAfterAPartHasTheSameRecords) {
  const auto e = Prepared();
  ASSERT_TRUE(e->CollectPart(Part(*store_, 0, 16), kRuns).ok());
  const store::RunTable again{.job = 2, .bucket_bits = kRuns.bucket_bits};
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    ASSERT_TRUE(e->RunShard(shard, *store_, again).ok());
  }
  const auto all = [&](std::uint64_t job) {
    std::vector<std::string> runs;
    EXPECT_TRUE(store::ScanRuns(*store_, job, 0, 16, [&](const store::RunKey&, auto bytes) {
                  runs.emplace_back(bytes);
                  return OkStatus();
                }).ok());
    return runs;
  };
  EXPECT_EQ(all(2), all(1));
}

TEST_P(CollectTest, PartsThatDoNotFitAreRefused) {
  auto part = Prepared()->CollectPart(Part(*store_, 0, 16), kRuns);
  ASSERT_TRUE(part.ok());
  const auto joined = [&](std::vector<FoundClasses> parts) {
    return std::move(*Prepared()).Join(std::move(parts)).status();
  };
  EXPECT_TRUE(absl::IsDataLoss(joined({*part, *part}))) << "every graph is in two classes";
  FoundClasses other = *part;
  other.graphs_by_size.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(joined({other})));
  for (const GraphName name : {GraphName{~std::uint64_t{0}, 0}, GraphName{0xffff'0000'0000, 0},
                               GraphName{0xffff'ff, 0}, GraphName{0, 1000}}) {
    other = *part;
    other.members.push_back({name, name});
    EXPECT_TRUE(absl::IsDataLoss(joined({other}))) << name.graph;
  }
}

TEST(FoundClassesTest, HasTheDocumentedBytes) {
  const FoundClasses found{{3, 4}, 7, 5, 2, 1, {{{2, 0}, {300, 1}}, {{5, 0}, {5, 3}, {6, 0}}}};
  const std::string bytes = EncodeFound(found);
  EXPECT_EQ(bytes, std::string("\x01\x02\x03\x04\x07\x05\x02\x01\x02"
                               "\x02\x02\x00\xaa\x02\x01"
                               "\x03\x03\x00\x00\x03\x01\x00",
                               22));
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeFound(bytes.substr(0, k)).status())) << k;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeFound(bytes + '\0').status()));
  FoundClasses unordered = found;
  std::swap(unordered.members[0][0], unordered.members[0][1]);
  unordered.members[0][0].graph = 2;
  EXPECT_TRUE(absl::IsDataLoss(DecodeFound(EncodeFound(unordered)).status()));
}

INSTANTIATE_TEST_SUITE_P(Modes, CollectTest, testing::Values(Mode::kExhaustive, Mode::kCanonical));

}  // namespace
}  // namespace tenon::worker
