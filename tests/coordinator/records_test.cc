// The coordinator's durable records: decode after encode is the identity, damage is noticed, and
// the vectors of docs/formats/coordinator.md.
#include "coordinator/board/records.h"

#include <gtest/gtest.h>

namespace tenon::board {
namespace {

using convert::ProofVerdict;
using convert::VerdictKind;

SubmitRecord ASubmission() {
  SubmitRecord r;
  r.request_id = "request-1";
  r.submitted_at = UnixTime(Milliseconds(1'700'000'000'123));
  r.spec = {.universe = "name: \"u\"\n",
            .max_operators = 3,
            .mode = convert::EnumerationMode::kCanonical,
            .shards = 65'536,
            .pack_name = "matrix",
            .pack_version = "1.2.3",
            .priority = -100,
            .memory_limit_bytes = std::uint64_t{1} << 40,
            .time_limit = Milliseconds(86'400'000)};
  return r;
}

StatusRecord AStatus() {
  StatusRecord r;
  r.paused = true;
  r.priority = -3;
  r.end = JobState::kFailed;
  r.ended_at = UnixTime(Milliseconds(-5));
  r.error = "because";
  r.pack_reference = "matrix@1.2.3";
  r.pack_address = std::string(64, 'f');
  r.counts = {{1, 2, UINT64_MAX}, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  r.round = 12;
  r.cpu = Milliseconds(13);
  r.shards_done = 14;
  return r;
}

// Every prefix, one byte more, and another version are refused.
template <class Record, class Decode>
void Check(const Record& record, const Decode& decode) {
  const std::string bytes = Encode(record);
  const auto back = decode(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, record);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    EXPECT_TRUE(absl::IsDataLoss(decode(std::string_view(bytes).substr(0, k)).status())) << k;
  }
  EXPECT_TRUE(absl::IsDataLoss(decode(bytes + '\0').status()));
  EXPECT_TRUE(absl::IsDataLoss(decode('\2' + bytes.substr(1)).status()));
}

TEST(RecordsTest, DecodingGivesWhatWasEncodedAndNoticesDamage) {
  Check(ASubmission(), DecodeSubmit);
  Check(StartRecord{UnixTime(Milliseconds(7)), 5, 20, UINT64_MAX >> 1, {"a:1", "node-2"}},
        DecodeStart);
  Check(AStatus(), DecodeStatus);
  Check(StatusRecord{}, DecodeStatus);
  Check(ShardRecord{{1, 2, 3}, Milliseconds(4)}, DecodeShard);
  Check(CollectRecord{{{1, 2}, 3, 4, 5, 6, std::string(64, '0')}, Milliseconds(7)}, DecodeCollect);
  Check(convert::SetAside{7, "killed", {"a", "b", "c"}}, DecodeSetAside);
  Check(ProofVerdict{VerdictKind::kVacuous, "no sizes", false, true, 99, "cert"}, DecodeVerdict);
}

TEST(RecordsTest, NumbersThatCannotBeAreRefused) {
  StartRecord start;
  start.shards = 0;
  EXPECT_TRUE(absl::IsDataLoss(DecodeStart(Encode(start)).status()));
  start.shards = convert::kShardsMax + 1;
  EXPECT_TRUE(absl::IsDataLoss(DecodeStart(Encode(start)).status()));
  start.shards = 1;
  start.bucket_bits = 21;
  EXPECT_TRUE(absl::IsDataLoss(DecodeStart(Encode(start)).status()));
  std::string verdict = Encode(ProofVerdict{});
  verdict[1] = 7;
  EXPECT_TRUE(absl::IsDataLoss(DecodeVerdict(verdict).status()));
}

TEST(RecordsTest, TheBytesAreThoseOfTheFormat) {
  EXPECT_EQ(Encode(ShardRecord{{5, 6, 300}, Milliseconds(10)}),
            std::string("\x01\x05\x06\xac\x02\x14", 6));
  EXPECT_EQ(Encode(ProofVerdict{VerdictKind::kRefuted, "no", false, true, 7, ""}),
            std::string("\x01\x02\x01\x07\x02no\x00", 8));
  EXPECT_EQ(KeyOf(JobKey::kShard, 258, 3), std::string("d\0\0\0\0\0\0\1\2\0\0\0\3", 13));
  EXPECT_EQ(JobVerdictKey(1, "rule"), std::string("j\0\0\0\0\0\0\0\1rule", 13));
  EXPECT_EQ(VerdictKey(1, 2, "rule"), std::string("c\0\0\0\0\0\0\0\1\0\0\0\2rule", 17));
}

}  // namespace
}  // namespace tenon::board
