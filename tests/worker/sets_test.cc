#include "worker/sets/enumerate.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/convert/universe.h"
#include "tests/worker/released_reference.h"

namespace tenon::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

graph::Universe Load(const std::string& name) {
  auto u = convert::LoadUniverse(name);
  EXPECT_TRUE(u.ok()) << u.status();
  return *u;
}

// The universe with some of its inputs.
graph::Universe With(graph::Universe u, const std::set<std::string>& inputs) {
  std::erase_if(u.inputs, [&](const auto& i) { return !inputs.contains(i.name); });
  EXPECT_EQ(u.inputs.size(), inputs.size());
  return u;
}

struct Walked {
  SetEnumeration found;
  std::set<std::set<test::GraphText>> classes;  // With at least two members.
};

Walked Enumerated(const graph::Universe& u, const EnumerateOptions& options) {
  Walked out;
  const auto store = store::Store::OpenTemporary();
  auto e = SetEnumerator::Prepare(u, options);
  EXPECT_TRUE(store.ok() && e.ok()) << e.status();
  if (!store.ok() || !e.ok()) return out;
  const store::RunTable table = (*e)->TableFor(1);
  for (std::uint32_t shard = 0; shard < options.shards; ++shard) {
    const Status s = (*e)->RunShard(shard, **store, table);
    EXPECT_TRUE(s.ok()) << s;
  }
  std::vector<std::vector<std::uint64_t>> classes;
  const auto found = (*e)->Collect(**store, table, [&](std::uint64_t, auto records) {
    classes.emplace_back();
    for (const store::NarrowRecord& r : records) classes.back().push_back(r.id);
    return OkStatus();
  });
  EXPECT_TRUE(found.ok()) << found.status();
  out.found = *found;
  std::vector<std::uint64_t> ids;
  for (const auto& c : classes) ids.insert(ids.end(), c.begin(), c.end());
  std::sort(ids.begin(), ids.end());
  const auto texts = (*e)->TextsOf(ids);
  EXPECT_TRUE(texts.ok()) << texts.status();
  for (const auto& c : classes) {
    std::set<test::GraphText> members;
    for (const std::uint64_t id : c) {
      const auto at = std::lower_bound(ids.begin(), ids.end(), id) - ids.begin();
      members.insert((*texts)[std::size_t(at)]);
    }
    EXPECT_EQ(members.size(), c.size());
    out.classes.insert(members);
  }
  return out;
}

TEST(OrdersTest, CountsLinearExtensions) {
  Orders orders;
  EXPECT_EQ(orders.Count(0, 0), 1u);
  EXPECT_EQ(orders.Count(3, 0), 6u);
  EXPECT_EQ(orders.Count(8, 0), 40320u);
  const auto edge = [](int from, int to) { return Before{1} << (8 * to + from); };
  EXPECT_EQ(orders.Count(3, edge(0, 1) | edge(1, 2)), 1u);
  EXPECT_EQ(orders.Count(4, edge(0, 2) | edge(1, 2) | edge(0, 3) | edge(1, 3)), 4u);
  EXPECT_EQ(orders.Count(2, edge(0, 1) | edge(1, 0)), 0u);
}

// TASO's own counts (its generator, run): 228, 57,947 and 16,347,235 sequences. Sets are what is
// left when the orders of creation are not told apart.
TEST(SetsTest, TheReleasedGeneratorsCountsToThreeOperators) {
  const auto found = EnumerateSets(Load("taso-as-released"), {.memory_limit_bytes = 300 << 20});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->graphs_by_size, ElementsAre(228, 32069, 3676883));
  EXPECT_THAT(found->sequences_by_size, ElementsAre(228, 57947, 16347235));
  EXPECT_THAT(found->outputs_by_size[2], ElementsAre(233241, 1494166, 1949476));
  EXPECT_EQ(found->graphs, 228u + 32069 + 3676883);
  EXPECT_LE(found->record_bytes, 16 * found->graphs);
}

TEST(SetsTest, CountsAndClassesAreTheSameForAnyShardsAndPasses) {
  const graph::Universe u = With(Load("taso-as-released"), {"x1", "x2", "w1", "s0"});
  const Walked one = Enumerated(u, {});
  EXPECT_EQ(one.found.passes, 1);
  EXPECT_GT(one.classes.size(), 100u);
  for (const std::uint32_t shards : {2u, 3u, 5u}) {
    const Walked many = Enumerated(u, {.shards = shards});
    EXPECT_EQ(many.found.graphs_by_size, one.found.graphs_by_size);
    EXPECT_EQ(many.found.sequences_by_size, one.found.sequences_by_size);
    EXPECT_EQ(many.found.outputs_by_size, one.found.outputs_by_size);
    EXPECT_EQ(many.found.classes, one.found.classes);
    EXPECT_EQ(many.found.equivalent_pairs, one.found.equivalent_pairs);
    EXPECT_EQ(many.classes, one.classes);
  }
}

TEST(SetsTest, MoreThanFitsInMemoryTakesSeveralPasses) {
  const graph::Universe u = Load("taso-as-released");
  const auto wide = EnumerateSets(u, {.memory_limit_bytes = 0});
  ASSERT_TRUE(wide.ok()) << wide.status();
  const auto narrow = EnumerateSets(u, {.memory_limit_bytes = 120 << 20});
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(wide->passes, 1);
  EXPECT_GT(narrow->passes, 1);
  EXPECT_EQ(narrow->graphs_by_size, wide->graphs_by_size);
  EXPECT_EQ(narrow->sequences_by_size, wide->sequences_by_size);
  EXPECT_EQ(narrow->classes, wide->classes);
  EXPECT_EQ(narrow->equivalent_pairs, wide->equivalent_pairs);
}

TEST(SetsTest, WhatDoesNotFitIsRefusedWithAnEstimate) {
  const graph::Universe u = Load("taso-as-released");
  const auto prepared = [&](const EnumerateOptions& options, std::uint64_t disk = 0) {
    return base::Message(SetEnumerator::Prepare(u, options, disk).status());
  };
  EXPECT_THAT(prepared({.memory_limit_bytes = 1 << 20}),
              AllOf(HasSubstr("GiB of memory"), HasSubstr("the memory limit is")));
  EXPECT_THAT(prepared({.time_limit_seconds = 1e-3}), HasSubstr("the time limit is"));
  EXPECT_THAT(prepared({}, 1000), HasSubstr("of disk are free"));
  EXPECT_THAT(prepared({.max_operators = 9}), HasSubstr("give 1 to 8"));
  EXPECT_THAT(prepared({.mode = Mode::kCanonical}), HasSubstr("exhaustively"));
}

TEST(SetsTest, OperatorsThatTheReleasedGeneratorLacksAreRefused) {
  graph::Universe u = Load("taso-as-released");
  u.operators.push_back({.op = ops::Sigmoid{}, .arity = 1});
  EXPECT_THAT(base::Message(SetEnumerator::Prepare(u, {}).status()), HasSubstr("'Sigmoid'"));
}

// Matrices, every operator on them; images, kernels, concatenation and its undoing.
TEST(SetsTest, GraphsAndClassesAreThoseOfASlowReference) {
  graph::Universe matrices = With(Load("taso-as-released"), {"x1", "w1"});
  matrices.max_elements = 64;
  for (graph::Universe::Input& input : matrices.inputs) input.extents = {3, 3};
  graph::Universe images = With(Load("taso-as-released"), {"i1", "w4", "w7"});
  images.inputs[0].extents = {1, 2, 3, 3};
  images.inputs[1].extents = {2, 2, 3, 3};
  images.inputs[2].extents = {2, 1, 1, 3};
  images.max_elements = 64;
  for (graph::Universe u : {matrices, images}) {
    u.max_operators = u.inputs.size() == 2 ? 3 : 2;
    // Its maximum looks at signs of numbers that wrap around; released_kernels_test has it.
    std::erase_if(u.operators,
                  [](const auto& o) { return std::holds_alternative<ops::MaxPool>(o.op); });
    const test::Reference want = test::ReferenceOf(u);
    const Walked walked = Enumerated(u, {});
    EXPECT_EQ(walked.found.graphs_by_size, want.sets_by_size);
    EXPECT_EQ(walked.found.sequences_by_size, want.sequences_by_size);
    EXPECT_EQ(walked.found.classes, want.classes);
    EXPECT_EQ(walked.classes, want.shared_classes);
    EXPECT_GT(want.shared_classes.size(), 5u);
  }
}

// What single-output enumeration finds, combined by hand: of two operators a graph with two outputs
// is any pair of graphs of one, and computes what its outputs do, in any order.
TEST(SetsTest, OfTrueSemanticsTheyAreSetsOfSingleOutputGraphs) {
  graph::Universe u = Load("matrix");
  const auto single = Enumerate(u, {.max_operators = 2});
  ASSERT_TRUE(single.ok()) << single.status();
  const TermId inputs = single->table.input_count();
  const auto size = static_cast<TermId>(single->table.size());
  std::vector<int> function(std::size_t(size), -1);
  int functions = 0;
  for (std::size_t c = 0; c < single->class_count(); ++c, ++functions) {
    for (const TermId id : single->members(c)) function[std::size_t(id)] = functions;
  }
  for (int& f : function) f = f < 0 ? functions++ : f;
  std::map<std::multiset<int>, std::set<test::GraphText>> classes;
  std::uint64_t pairs = 0;
  for (TermId a = inputs; a < size; ++a) {
    classes[{function[std::size_t(a)]}].insert({single->table.Print(a)});
    for (TermId b = inputs; b < a && single->table.term_size(a) == 1; ++b, ++pairs) {
      test::GraphText text{single->table.Print(a), single->table.Print(b)};
      std::sort(text.begin(), text.end());
      classes[{function[std::size_t(a)], function[std::size_t(b)]}].insert(text);
    }
  }
  std::set<std::set<test::GraphText>> shared;
  for (const auto& [functions_of, members] : classes) {
    if (members.size() > 1) shared.insert(members);
  }
  u.outputs = graph::Outputs::kMultiple;
  for (const std::uint32_t shards : {1u, 4u}) {
    const Walked walked = Enumerated(u, {.max_operators = 2, .shards = shards});
    EXPECT_THAT(walked.found.graphs_by_size, ElementsAre(42, 1116 + pairs));
    EXPECT_THAT(walked.found.sequences_by_size, ElementsAre(42, 1116 + 2 * pairs));
    EXPECT_THAT(walked.found.outputs_by_size[1], ElementsAre(1116, pairs));
    EXPECT_EQ(walked.found.classes, classes.size());
    EXPECT_EQ(walked.classes, shared);
  }
}

// Three operators with shared operands; operators of three operands in the walk of four.
TEST(SetsTest, TheWalkVisitsEveryClosedSetOnce) {
  const std::uint64_t fingerprints[] = {1, 2, 4, 8, 16, 32, 64};
  NodeTable nodes(false);
  const std::vector<std::vector<ResultNumber>> operands = {{},     {},        {},       {0},
                                                           {0, 2}, {0, 2, 4}, {6, 8, 0}};
  const int closure[] = {1, 1, 1, 2, 3, 4, 5};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    nodes.Add({.fingerprints = {&fingerprints[k], 1},
               .operands = operands[k],
               .closure_size = closure[k]});
  }
  nodes.CompleteLevel();
  std::set<std::set<NodeNumber>> want, visited;
  for (unsigned mask = 0; mask < 1u << operands.size(); ++mask) {
    std::set<NodeNumber> set;
    bool closed = true;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if ((mask >> k & 1) == 0) continue;
      set.insert(NodeNumber(k));
      for (const ResultNumber r : operands[k]) closed = closed && (mask >> (r / 2) & 1) != 0;
    }
    if (closed) want.insert(set);
  }
  nodes.Walk(kSetMax, [&](const WalkFrame& frame) {
    const ClosedSet& set = frame.set;
    const auto end = set.node.begin() + set.size;
    EXPECT_TRUE(visited.emplace(set.node.begin(), end).second);
    std::uint64_t sum = 0;
    int outputs = 0;
    set.ForEachOutput([&](ResultNumber r) {
      sum += nodes.fingerprint(r);
      ++outputs;
    });
    EXPECT_EQ(set.sum, sum);
    EXPECT_EQ(set.outputs, outputs);
    return true;
  });
  EXPECT_EQ(visited, want);
}

}  // namespace
}  // namespace tenon::worker
