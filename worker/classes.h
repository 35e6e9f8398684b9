// Collector: from records in a store to classes of terms, at once or by parts of the buckets.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/enumerate.h"
#include "worker/found.h"

namespace tenon::worker {

// Used once, by Enumerator. Run and Join take the enumerator's parts, Part leaves them as they were
// (but for the values of terms, see Enumerator::RunShard). Thread-compatible.
class Collector {
 public:
  explicit Collector(Enumerator& enumerator) : e_(enumerator) {}
  StatusOr<Enumeration> Run(const store::RunSource& source, const store::RunTable& runs);
  // Everything up to the split classes, of the buckets that `source` has.
  StatusOr<FoundClasses> Part(const store::RunSource& source, const store::RunTable& runs);
  // The rest, from parts. DataLoss: they do not fit together, or are not of this universe.
  StatusOr<Enumeration> Join(std::vector<FoundClasses> parts);

 private:
  // A graph that shares its fingerprint, under one of its names.
  struct Member {
    std::uint64_t id = 0;  // As in records.
    TermId term = graph::kNoTerm;
    Fingerprint biased;  // At the biased samples.
  };

  std::uint64_t graph_of(std::uint64_t id) const { return id >> e_.renaming_bits_; }
  std::size_t renaming_of(std::uint64_t id) const {
    return std::size_t(id & ((std::uint64_t{1} << e_.renaming_bits_) - 1));
  }
  bool is_stored(std::uint64_t id) const { return id >> 32 == 0; }
  bool is_input(std::uint64_t id) const {
    return is_stored(id) && graph_of(id) < std::uint64_t(e_.levels_.end(0));
  }

  void Truncate(std::size_t terms);
  Status Find(const store::RunSource& source, const store::RunTable& runs);
  Status Scan(const store::RunSource& source, const store::RunTable& runs);
  void Begin();
  Status Decode();
  Status CheckName(const GraphName& name) const;
  Enumeration Finished();
  TermId TermOf(std::uint64_t graph) const;
  TermId Renamed(TermId term, std::size_t renaming);
  std::size_t LeastRenaming(TermId term, std::size_t renaming) const;
  TermId AddLast(int operator_index, std::span<const TermId> operands);
  Status MarkSignDependent();
  Status Resample();
  void Split();
  void Finish(std::span<const Member> members);
  std::vector<GraphName> Named(std::span<const Member> members) const;
  void NameTerms();
  void StateCommutativity();

  Enumerator& e_;
  Enumeration out_;
  std::vector<std::size_t> class_at_{0};  // Of members_.
  std::vector<Member> members_;
  std::vector<std::uint64_t> decoded_;         // Graphs of the last level, ascending, ..
  std::vector<TermId> decoded_terms_;          // .. and their terms.
  std::vector<bool> sign_free_;                // By term.
  std::vector<std::vector<GraphName>> found_;  // The classes, ..
  std::vector<std::vector<TermId>> terms_;     // .. in the end as terms.
};

}  // namespace tenon::worker
