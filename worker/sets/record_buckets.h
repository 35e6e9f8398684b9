// RecordBuckets: records put into buckets by fingerprint as they are made, in memory that is taken
// once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/narrow_run.h"

namespace tenon::worker {

// The buckets [first, end) of 2^bits. Thread-compatible.
class RecordBuckets {
 public:
  explicit RecordBuckets(int bits) : shift_(64 - bits), heads_(std::size_t{1} << bits) {}

  // Empties it and takes these buckets from now on.
  void Take(std::uint32_t first, std::uint32_t end);
  std::uint32_t first() const { return first_; }
  std::uint32_t end() const { return first_ + count_; }

  // Ignores a record of another bucket.
  void Add(std::uint64_t fingerprint, std::uint64_t id) {
    const auto bucket = static_cast<std::uint32_t>(shift_ == 64 ? 0 : fingerprint >> shift_);
    if (bucket - first_ >= count_) return;
    Head& head = heads_[bucket - first_];
    if (head.at == head.end) Grow(head);
    *head.at++ = {fingerprint, id};
  }
  // Moves the records of a bucket to `out`, in the order in which they were added, and gives their
  // memory back to this object.
  void Remove(std::uint32_t bucket, std::vector<store::NarrowRecord>& out);

  std::size_t memory_bytes() const { return blocks_.size() * kBlockBytes; }
  // What so many records take.
  static double BytesFor(double records, int bits);

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{2} << 20;  // Of a huge page.
  static constexpr std::uint32_t kChunk = 256;                      // Records.
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kChunksInBlock =
      kBlockBytes / (kChunk * sizeof(store::NarrowRecord));
  struct Head {
    store::NarrowRecord* at = nullptr;
    store::NarrowRecord* end = nullptr;
    std::uint32_t chunk = kNone;  // The one being filled.
  };
  struct Free {
    void operator()(store::NarrowRecord* p) const;
  };

  void Grow(Head& head);
  store::NarrowRecord* At(std::uint32_t chunk) const {
    return blocks_[chunk / kChunksInBlock].get() + std::size_t{chunk % kChunksInBlock} * kChunk;
  }

  int shift_;
  std::uint32_t first_ = 0, count_ = 0;
  std::vector<Head> heads_;
  std::vector<std::uint32_t> before_;  // By chunk: the one filled before it for the same bucket.
  std::vector<std::uint32_t> free_;
  std::vector<std::unique_ptr<store::NarrowRecord[], Free>> blocks_;
};

}  // namespace tenon::worker
