#include "worker/found.h"

#include <fmt/format.h>

#include "core/base/bytes.h"
#include "core/base/check.h"

namespace tenon::worker {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint64_t kSizesMax = 64;
constexpr std::uint64_t kNameBytesMin = 2;  // Of a name: step and renaming.

}  // namespace

std::string EncodeFound(const FoundClasses& found) {
  std::string out;
  base::PutByte(out, kVersion);
  base::PutVarint(out, found.graphs_by_size.size());
  for (const std::uint64_t count : found.graphs_by_size) base::PutVarint(out, count);
  for (const std::uint64_t count :
       {found.graphs, found.classes, found.equivalent_pairs, found.split_classes}) {
    base::PutVarint(out, count);
  }
  base::PutVarint(out, found.members.size());
  std::uint64_t first = 0;
  for (const std::vector<GraphName>& names : found.members) {
    base::PutVarint(out, names.size());
    std::uint64_t before = first;
    first = names[0].graph;
    for (const GraphName& name : names) {
      CHECK(before <= name.graph);
      base::PutVarint(out, name.graph - before);
      base::PutVarint(out, name.renaming);
      before = name.graph;
    }
  }
  return out;
}

StatusOr<FoundClasses> DecodeFound(std::string_view bytes) {
  base::ByteReader in(bytes);
  FoundClasses out;
  if (in.Byte() != kVersion) in.Fail("the version is not 1");
  out.graphs_by_size.resize(in.Count(kSizesMax, "there are too many sizes"));
  for (std::uint64_t& count : out.graphs_by_size) count = in.Varint();
  for (std::uint64_t* count :
       {&out.graphs, &out.classes, &out.equivalent_pairs, &out.split_classes}) {
    *count = in.Varint();
  }
  const std::uint64_t classes =
      in.Count(in.remaining() / (2 * kNameBytesMin), "there are too many classes");
  std::uint64_t first = 0;
  for (std::uint64_t c = 0; c < classes && in.ok(); ++c) {
    const std::uint64_t size = in.Count(in.remaining() / kNameBytesMin, "a class is too large");
    if (size < 2) in.Fail("a class has fewer than two members");
    if (!in.ok()) break;
    std::vector<GraphName>& names = out.members.emplace_back(size);
    std::uint64_t graph = first;
    for (std::uint64_t k = 0; k < size; ++k) {
      const std::uint64_t step = in.Varint();
      if (step > ~std::uint64_t{0} - graph) in.Fail("a graph has no such number");
      graph += step;
      names[k] = {graph, in.Varint()};
      if (k == 0) first = graph;
      if (k > 0 && !(names[k - 1] < names[k])) in.Fail("members are out of order");
    }
    if (c > 0 && !(out.members[c - 1] < names)) in.Fail("classes are out of order");
  }
  in.End();
  if (!in.ok()) {
    return base::DataLoss(fmt::format("a part of the classes: at byte {}: {}; run the job again",
                                      in.offset(), in.error()));
  }
  return out;
}

}  // namespace tenon::worker
