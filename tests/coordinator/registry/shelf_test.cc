#include "coordinator/registry/shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/registry/pack_file.h"
#include "core/rules/text.h"
#include "store/store.h"

namespace tenon::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ShelfTest : public ::testing::Test {
 protected:
  ShelfTest() : key_(registry::SigningKey::Generate()) {
    auto store = store::Store::OpenTemporary();
    EXPECT_TRUE(store.ok());
    store_ = *std::move(store);
    journal_ = std::make_unique<board::StoreJournal>(*store_);
    shelf_ = std::make_shared<PackShelf>(*journal_);
  }
  std::string File(const std::string& name, const std::string& version, bool is_signed = true,
                   const std::string& universe = "", const std::string& certificate = "c") {
    registry::PackFile file{.name = name, .version = *pack::ParseVersion(version)};
    file.content.universe = universe;
    auto rule = rules::ParseRule("rule t given a[m,n] source Transpose(Transpose(a)) target a");
    EXPECT_TRUE(rule.ok());
    file.content.rules.push_back({*std::move(rule), certificate});
    return *registry::EncodePackFile(file, is_signed ? &key_ : nullptr);
  }
  Status Publish(const std::string& name, const std::string& version) {
    return shelf_->Publish(File(name, version), 1, true).status();
  }
  std::vector<std::string> Listed(const std::string& name) {
    std::vector<std::string> out;
    const std::vector<ShelfEntry> entries = *shelf_->List(name);
    for (const ShelfEntry& e : entries) {
      out.push_back(e.name + "@" + pack::ToString(e.version));
    }
    return out;
  }
  std::string Found(const Which& which) {
    const auto entry = shelf_->Find("a", which);
    return entry.ok() ? pack::ToString(entry->version) : "none";
  }

  registry::SigningKey key_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<board::StoreJournal> journal_;
  std::shared_ptr<PackShelf> shelf_;
};

TEST_F(ShelfTest, WhatIsPublishedIsFoundReadAndListedInOrder) {
  ASSERT_TRUE(Publish("b", "1.0.0").ok());
  ASSERT_TRUE(Publish("a", "1.10.0").ok());
  ASSERT_TRUE(Publish("a", "1.9.0").ok());
  ASSERT_TRUE(Publish("ab", "1.0.0").ok());
  EXPECT_THAT(Listed(""), ElementsAre("a@1.9.0", "a@1.10.0", "ab@1.0.0", "b@1.0.0"));
  EXPECT_THAT(Listed("a"), ElementsAre("a@1.9.0", "a@1.10.0"));
  EXPECT_THAT(Listed("c"), IsEmpty());
  EXPECT_EQ(Found({}), "1.10.0");  // The highest, not the last.
  EXPECT_EQ(Found({.version = "1.9.0"}), "1.9.0");
  EXPECT_EQ(Found({.version = "1.9.1"}), "none");
  const auto entry = shelf_->Find("a", {.version = "1.9.0"});
  EXPECT_EQ(*shelf_->Read(*entry), File("a", "1.9.0"));
  EXPECT_EQ(entry->rules, 1u);
  EXPECT_EQ(entry->published_at_ms, 1);
  EXPECT_EQ(entry->signer.size(), 64u);
}

TEST_F(ShelfTest, ARuleWithoutCertificateIsNotPublished) {
  const Status refused = shelf_->Publish(File("a", "1.0.0", true, "", ""), 1, true).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(Listed(""), IsEmpty());
}

TEST_F(ShelfTest, AVersionNeverChanges) {
  ASSERT_TRUE(shelf_->Publish(File("a", "1.0.0"), 1, true).ok());
  // The same bytes again: the entry of the first time.
  EXPECT_EQ(shelf_->Publish(File("a", "1.0.0"), 2, true)->published_at_ms, 1);
  EXPECT_EQ(shelf_->Publish(File("a", "1.0.0", true, "# other"), 3, true).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*shelf_->Read(*shelf_->Find("a", {})), File("a", "1.0.0"));
}

TEST_F(ShelfTest, NoPacksDamagedAndUnsignedOnesAreRefused) {
  std::string damaged = File("a", "1.0.0");
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_EQ(shelf_->Publish(damaged, 1, true).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(shelf_->Publish("", 1, true).status().code(), absl::StatusCode::kDataLoss);
  const std::string open = File("a", "1.0.0", /*is_signed=*/false);
  EXPECT_EQ(shelf_->Publish(open, 1, true).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Listed(""), IsEmpty());
  EXPECT_TRUE(shelf_->Publish(open, 1, false).ok());
}

TEST_F(ShelfTest, ChannelsMove) {
  ASSERT_TRUE(Publish("a", "1.0.0").ok());
  ASSERT_TRUE(Publish("a", "2.0.0").ok());
  ASSERT_TRUE(shelf_->SetChannel("a", "stable", "1.0.0").ok());
  EXPECT_THAT(shelf_->SetChannel("a", "old", "1.0.0")->channels, ElementsAre("old", "stable"));
  EXPECT_EQ(Found({.channel = "stable"}), "1.0.0");
  ASSERT_TRUE(shelf_->SetChannel("a", "stable", "2.0.0").ok());
  EXPECT_EQ(Found({.channel = "stable"}), "2.0.0");
  EXPECT_EQ(Found({.channel = "old"}), "1.0.0");
  EXPECT_EQ(Found({.channel = "none"}), "none");
}

TEST_F(ShelfTest, BadNamesAndVersionsAreRefused) {
  ASSERT_TRUE(Publish("a", "1.0.0").ok());
  for (const char* channel : {"", "Stable", "a/b", "a@b", "123456789012345678901234567890123"}) {
    EXPECT_EQ(shelf_->SetChannel("a", channel, "1.0.0").status().code(),
              absl::StatusCode::kInvalidArgument)
        << channel;
  }
  EXPECT_EQ(shelf_->SetChannel("a", "x", "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(shelf_->SetChannel("a", "x", "3.0.0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(shelf_->Find("A/..", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ShelfTest, BytesThatAreNotWhatWasPublishedAreNoticed) {
  ASSERT_TRUE(Publish("a", "1.0.0").ok());
  ASSERT_TRUE(store_->Put(store::Family::kPacks, "file/a@1.0.0", File("a", "1.0.1")).ok());
  EXPECT_EQ(shelf_->Read(*shelf_->Find("a", {})).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(store_->Put(store::Family::kPacks, "entry/a@1.0.0", "nonsense").ok());
  EXPECT_EQ(shelf_->List("").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ShelfTest, TheCoordinatorPublishesThroughTheSameShelf) {
  const auto sink = MakeShelfSink(shelf_);
  EXPECT_FALSE(*sink->Has("a", "1.0.0"));
  ASSERT_TRUE(sink->Publish("a", "1.0.0", File("a", "1.0.0")).ok());
  EXPECT_TRUE(*sink->Has("a", "1.0.0"));
  EXPECT_TRUE(sink->Publish("a", "1.0.0", File("a", "1.0.0")).ok());
  EXPECT_EQ(sink->Publish("a", "1.0.0", File("a", "1.0.0", true, "# other")).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Found({}), "1.0.0");
}

}  // namespace
}  // namespace tenon::coordinator
