#include "worker/sets/record_buckets.h"

#include <sys/mman.h>

#include <cmath>

#include <algorithm>
#include <new>

#include "core/base/check.h"

namespace tenon::worker {

void RecordBuckets::Free::operator()(store::NarrowRecord* p) const { munmap(p, kBlockBytes); }

double RecordBuckets::BytesFor(double records, int bits) {
  const double buckets = std::ldexp(1.0, bits);
  return (records + buckets * kChunk / 2) * sizeof(store::NarrowRecord) + buckets * sizeof(Head) +
         double(kBlockBytes);
}

void RecordBuckets::Take(std::uint32_t first, std::uint32_t end) {
  CHECK(first <= end && end <= heads_.size());
  first_ = first;
  count_ = end - first;
  std::fill(heads_.begin(), heads_.end(), Head{});
  free_.clear();
  for (std::size_t k = before_.size(); k > 0; --k) {
    free_.push_back(static_cast<std::uint32_t>(k - 1));
  }
}

void RecordBuckets::Grow(Head& head) {
  if (free_.empty()) {
    // Pages of the kernel as large as they come: buckets are written to in no order.
    void* p =
        mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, kBlockBytes, MADV_HUGEPAGE);
    blocks_.emplace_back(static_cast<store::NarrowRecord*>(p));
    const auto chunk = static_cast<std::uint32_t>(before_.size());
    before_.resize(before_.size() + kChunksInBlock, kNone);
    for (std::uint32_t k = kChunksInBlock; k > 0; --k) free_.push_back(chunk + k - 1);
  }
  const std::uint32_t chunk = free_.back();
  free_.pop_back();
  before_[chunk] = head.chunk;
  head.chunk = chunk;
  head.at = At(chunk);
  head.end = head.at + kChunk;
}

void RecordBuckets::Remove(std::uint32_t bucket, std::vector<store::NarrowRecord>& out) {
  CHECK(bucket - first_ < count_);
  Head& head = heads_[bucket - first_];
  std::vector<std::uint32_t> chunks;
  for (std::uint32_t c = head.chunk; c != kNone; c = before_[c]) chunks.push_back(c);
  out.clear();
  for (std::size_t k = chunks.size(); k > 0; --k) {
    const store::NarrowRecord* from = At(chunks[k - 1]);
    out.insert(out.end(), from, k == 1 ? head.at : from + kChunk);
  }
  free_.insert(free_.end(), chunks.begin(), chunks.end());
  head = {};
}

}  // namespace tenon::worker
