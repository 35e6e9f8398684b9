#include "worker/enumerate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/eval/eval.h"
#include "proto/convert/universe.h"
#include "worker/estimate.h"

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

Enumeration Enumerated(const graph::Universe& u, const EnumerateOptions& options) {
  auto e = Enumerate(u, options);
  EXPECT_TRUE(e.ok()) << e.status();
  return e.ok() ? *std::move(e) : Enumeration{};
}

// The classes as sets of texts: what does not depend on how terms are numbered.
std::set<std::set<std::string>> Texts(const Enumeration& e) {
  std::set<std::set<std::string>> out;
  for (std::size_t c = 0; c < e.class_count(); ++c) {
    std::set<std::string> members;
    for (TermId id : e.members(c)) members.insert(e.table.Print(id));
    EXPECT_EQ(members.size(), e.members(c).size());
    out.insert(members);
  }
  return out;
}

bool Equal(const Enumeration& e, const std::string& a, const std::string& b) {
  for (std::size_t c = 0; c < e.class_count(); ++c) {
    bool has_a = false, has_b = false;
    for (TermId id : e.members(c)) {
      has_a = has_a || e.table.Print(id) == a;
      has_b = has_b || e.table.Print(id) == b;
    }
    if (has_a || has_b) return has_a && has_b;
  }
  return false;
}

// The published counts of the matrix universe, over the reals; integer inputs would show 92869
// pairs.
TEST(EnumerateTest, MatrixCountsAreTheSameForAnyShardsAndSeed) {
  const graph::Universe u = Load("matrix");
  std::vector<std::size_t> first_at;
  std::vector<TermId> first_members;
  for (const std::uint32_t shards : {1u, 3u, 7u}) {
    for (const std::uint64_t seed : {0u, 20261129u}) {
      const Enumeration e = Enumerated(u, {.shards = shards, .seed = seed});
      EXPECT_THAT(e.graphs_by_size, ElementsAre(42, 1116, 40278));
      EXPECT_EQ(e.graphs, 41436u);
      EXPECT_EQ(e.classes, 14993u);
      EXPECT_EQ(e.equivalent_pairs, 92811u);
      EXPECT_EQ(e.table.size(), 41439u);
      if (first_at.empty()) {
        first_at = e.class_at;
        first_members = e.class_members;
      }
      // Not only as many: the same terms under the same numbers.
      EXPECT_EQ(e.class_at, first_at) << shards << " shards, seed " << seed;
      EXPECT_EQ(e.class_members, first_members) << shards << " shards, seed " << seed;
    }
  }
}

TEST(EnumerateTest, ClassesAreSortedAndHoldInputsAsMembers) {
  const Enumeration e = Enumerated(Load("matrix"), {.max_operators = 2});
  for (std::size_t c = 0; c < e.class_count(); ++c) {
    const auto members = e.members(c);
    ASSERT_GE(members.size(), 2u);
    EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
    if (c > 0) {
      EXPECT_LT(e.members(c - 1)[0], members[0]);
    }
  }
  EXPECT_TRUE(Equal(e, "a", "Transpose(Transpose(a))"));
  EXPECT_TRUE(Equal(e, "MatMul(MatMul(a, b), c)", "MatMul(a, MatMul(b, c))"));
  EXPECT_FALSE(Equal(e, "Relu(a)", "a"));
  // The accident of integers.
  EXPECT_FALSE(Equal(e, "Add(a, Mul(a, a))", "Relu(Add(a, Mul(a, a)))"));
}

TEST(EnumerateTest, OnlyWhatSharesAClassIsKeptOnDemand) {
  const graph::Universe u = Load("matrix");
  const Enumeration all = Enumerated(u, {.shards = 2});
  const Enumeration shared = Enumerated(u, {.shards = 2, .keep_all = false});
  EXPECT_LT(shared.table.size(), all.table.size());
  EXPECT_EQ(Texts(shared), Texts(all));
  EXPECT_EQ(shared.classes, all.classes);
}

// Numbers of terms depend on the order of operators and inputs in the file; what is equal does not.
TEST(EnumerateTest, RenumberingChangesNoClass) {
  graph::Universe u = Load("matrix");
  const auto before = Texts(Enumerated(u, {.max_operators = 2}));
  std::reverse(u.operators.begin(), u.operators.end());
  std::rotate(u.inputs.begin(), u.inputs.begin() + 1, u.inputs.end());
  EXPECT_EQ(Texts(Enumerated(u, {.max_operators = 2})), before);
}

using Tensor = eval::Tensor<double>;

Tensor RandomTensor(const graph::Extents& extents, std::mt19937_64& random) {
  Tensor t{extents, {}};
  std::uniform_real_distribution<double> uniform(-1.5, 1.5);
  const double bias = uniform(random);
  for (std::int64_t k = 0; k < graph::ElementCount(extents); ++k) {
    t.data.push_back(uniform(random) + bias);
  }
  return t;
}

bool Close(const Tensor& a, const Tensor& b) {
  if (!(a.extents == b.extents)) return false;
  for (std::size_t k = 0; k < a.data.size(); ++k) {
    if (std::fabs(a.data[k] - b.data[k]) > 1e-8 * (1 + std::fabs(a.data[k]))) return false;
  }
  return true;
}

// All pairs, by doubles and the evaluator: classes are exactly what is equal at random inputs.
void ExpectClassesAreTheEqualPairs(const graph::Universe& u, int size) {
  const Enumeration e = Enumerated(u, {.max_operators = size, .shards = 2});
  std::vector<std::size_t> class_of(e.table.size(), ~std::size_t{0});
  for (std::size_t c = 0; c < e.class_count(); ++c) {
    for (TermId id : e.members(c)) class_of[std::size_t(id)] = c;
  }
  std::mt19937_64 random(7);
  constexpr int kSamples = 24;
  std::vector<std::vector<Tensor>> values(e.table.size());
  for (int s = 0; s < kSamples; ++s) {
    for (std::size_t k = 0; k < e.table.size(); ++k) {
      const TermId id = static_cast<TermId>(k);
      if (e.table.is_input(id)) {
        values[k].push_back(RandomTensor(e.table.extents(id), random));
        continue;
      }
      std::vector<const Tensor*> operands;
      for (TermId o : e.table.operands(id)) operands.push_back(&values[std::size_t(o)].back());
      auto value = eval::Apply(e.table.op(id), operands);
      ASSERT_TRUE(value.ok()) << value.status();
      values[k].push_back(*std::move(value));
    }
  }
  std::uint64_t pairs = 0;
  for (std::size_t a = 0; a < e.table.size(); ++a) {
    for (std::size_t b = a + 1; b < e.table.size(); ++b) {
      bool equal = true;
      for (std::size_t s = 0; s < kSamples && equal; ++s) equal = Close(values[a][s], values[b][s]);
      const bool in_class = class_of[a] == class_of[b] && class_of[a] != ~std::size_t{0};
      ASSERT_EQ(equal, in_class) << e.table.Print(static_cast<TermId>(a)) << " and "
                                 << e.table.Print(static_cast<TermId>(b));
      pairs += equal && !e.table.is_input(static_cast<TermId>(a)) ? 1 : 0;
    }
  }
  EXPECT_EQ(pairs, e.equivalent_pairs);
}

TEST(EnumerateTest, MatrixClassesAreExactlyTheEqualPairs) {
  for (const int size : {1, 2}) ExpectClassesAreTheEqualPairs(Load("matrix"), size);
}

TEST(EnumerateTest, ConvClassesAreExactlyTheEqualPairs) {
  ExpectClassesAreTheEqualPairs(Load("conv"), 1);
  ExpectClassesAreTheEqualPairs(Load("conv"), 2);
}

TEST(EnumerateTest, TasoCountsAreTheSameForAnyShardsAndSeed) {
  const graph::Universe u = Load("taso");
  for (const EnumerateOptions& options : {EnumerateOptions{.max_operators = 2},
                                          {.max_operators = 2, .shards = 5, .seed = 20261130}}) {
    const Enumeration e = Enumerated(u, options);
    EXPECT_THAT(e.graphs_by_size, ElementsAre(526, 19810));
    EXPECT_EQ(e.classes, 12277u);
    EXPECT_EQ(e.equivalent_pairs, 15163u);
  }
}

TEST(EnumerateTest, TasoUniverseShowsItsAxioms) {
  const Enumeration e = Enumerated(Load("taso"), {.max_operators = 2});
  const std::string same = ", pads=[1,1,1,1])", pool = ", kernel_shape=[3,3], pads=[1,1,1,1]";
  EXPECT_TRUE(Equal(e, "Transpose(Transpose(x1))", "x1"));
  EXPECT_TRUE(Equal(e, "MatMul(x1, Eye(size=4))", "x1"));
  EXPECT_TRUE(Equal(e, "Conv(i1, ConvIdentity(channels=4, kernel_shape=[3,3])" + same, "i1"));
  EXPECT_TRUE(Equal(e, "Conv(i1, PoolKernel(channels=4, kernel_shape=[3,3])" + same,
                    "AveragePool(i1" + pool + ", count_include_pad=1)"));
  EXPECT_TRUE(
      Equal(e, "Relu(Conv(i1, w4" + same + ")", "Conv(i1, w4, pads=[1,1,1,1], activation=relu)"));
  EXPECT_TRUE(Equal(e, "Conv(i1, Enlarge(v1)" + same, "Conv(i1, v1)"));
  EXPECT_TRUE(Equal(e, "Relu(MaxPool(i1" + pool + "))", "MaxPool(Relu(i1)" + pool + ")"));
  EXPECT_FALSE(Equal(e, "Relu(AveragePool(i1" + pool + ", count_include_pad=1))",
                     "AveragePool(Relu(i1)" + pool + ", count_include_pad=1)"));
}

TEST(EnumerateTest, ConvUniverseShowsTheTextbookRewrites) {
  const Enumeration e = Enumerated(Load("conv"), {.shards = 2});
  const std::string pad = ", pads=[1,1,1,1]";
  const auto conv = [&](const std::string& operands, const std::string& more = "") {
    return "Conv(" + operands + pad + more + ")";
  };
  EXPECT_TRUE(Equal(e, "Add(" + conv("x, w") + ", " + conv("x, v") + ")", conv("x, Add(w, v)")));
  EXPECT_TRUE(Equal(e, "Add(" + conv("x, w") + ", " + conv("y, w") + ")", conv("Add(x, y), w")));
  EXPECT_TRUE(Equal(e, "Concat(" + conv("x, w") + ", " + conv("x, v") + ", axis=1)",
                    conv("x, Concat(w, v)")));
  EXPECT_TRUE(
      Equal(e, "Concat(" + conv("x, w") + ", " + conv("y, w") + ")", conv("Concat(x, y), w")));
  EXPECT_TRUE(Equal(e, "Conv(x, u)", conv("x, Enlarge(u)")));
  EXPECT_TRUE(Equal(e, "Relu(" + conv("x, w") + ")", conv("x, w", ", activation=relu")));
  EXPECT_TRUE(Equal(e, "Relu(Add(" + conv("x, w") + ", r))",
                    conv("x, w, r", ", residual=1, activation=relu")));
  EXPECT_FALSE(Equal(e, "Relu(Add(" + conv("x, w") + ", r))", conv("x, w, r", ", residual=1")));
}

// With one element a tensor, the main samples show four signs an input, so that for one seed in
// sixteen Relu(a) looks like a. The biased samples tell them apart.
TEST(EnumerateTest, ClassesThatMixFunctionsAreSplit) {
  const auto u = convert::ParseUniverse(
      "name: \"s\" outputs: SINGLE max_operators: 2 input { name: \"a\" kind: ACTIVATION shape: "
      "[1] "
      "} input { name: \"b\" kind: ACTIVATION shape: [1] } operator { name: \"Relu\" } "
      "operator { name: \"Add\" } operator { name: \"Mul\" }",
      "s");
  ASSERT_TRUE(u.ok()) << u.status();
  std::uint64_t splits = 0;
  const Enumeration first = Enumerated(*u, {});
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Enumeration e = Enumerated(*u, {.seed = seed});
    splits += e.split_classes;
    EXPECT_EQ(e.class_members, first.class_members) << "seed " << seed;
    EXPECT_EQ(e.classes, first.classes) << "seed " << seed;
  }
  EXPECT_GT(splits, 0u);
}

// Shards are idempotent: running one twice, or all of them on another machine, changes nothing.
TEST(EnumerateTest, ShardsWriteTheSameTwice) {
  const graph::Universe u = Load("matrix");
  const EnumerateOptions options{.max_operators = 2, .shards = 3};
  auto one = Enumerator::Prepare(u, options);
  auto other = Enumerator::Prepare(u, options);
  ASSERT_TRUE(one.ok() && other.ok());
  auto store = store::Store::OpenTemporary();
  ASSERT_TRUE(store.ok()) << store.status();
  const store::RunTable runs = (*one)->TableFor(5);
  const auto dump = [&] {
    std::map<std::string, std::string> out;
    EXPECT_TRUE((*store)
                    ->Scan(store::Family::kFingerprints, "",
                           [&](std::string_view key, std::string_view value) {
                             out.emplace(key, value);
                             return OkStatus();
                           })
                    .ok());
    return out;
  };
  for (const std::uint32_t shard : {0u, 1u, 2u}) {
    ASSERT_TRUE((*one)->RunShard(shard, **store, runs).ok());
  }
  const auto before = dump();
  EXPECT_EQ(before.size(), 3u);
  for (const std::uint32_t shard : {2u, 0u, 2u}) {
    ASSERT_TRUE((*other)->RunShard(shard, **store, runs).ok());
  }
  EXPECT_EQ(dump(), before);
  const auto e = std::move(**other).Collect(**store, runs);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(Texts(*e), Texts(Enumerated(u, {.max_operators = 2})));
}

TEST(EnumerateTest, RecordsOfAnotherUniverseAreRefused) {
  auto store = store::Store::OpenTemporary();
  ASSERT_TRUE(store.ok());
  auto e = Enumerator::Prepare(Load("matrix"), {.max_operators = 2});
  ASSERT_TRUE(e.ok());
  std::vector<store::Record> records{{{1, 1}, (std::uint64_t{9999999} << 32) + 1},
                                     {{1, 1}, (std::uint64_t{9999999} << 32) + 2}};
  ASSERT_TRUE(store::PutRuns(**store, {1, 0}, 0, records).ok());
  const auto result = std::move(**e).Collect(**store, {1, 0});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss) << result.status();
}

TEST(EnumerateTest, WhatWouldExceedTheLimitsIsRefusedWithAnEstimate) {
  const graph::Universe u = Load("matrix");
  const auto error = [&](EnumerateOptions options) {
    const auto e = Enumerate(u, options);
    EXPECT_EQ(e.status().code(), absl::StatusCode::kResourceExhausted) << e.status();
    return base::Message(e.status());
  };
  EXPECT_THAT(error({.max_operators = 6, .memory_limit_bytes = std::uint64_t{1} << 30}),
              AllOf(HasSubstr("universe matrix"), HasSubstr("memory limit is 1 GiB"),
                    HasSubstr("fewer operators")));
  EXPECT_THAT(error({.max_operators = 4, .time_limit_seconds = 1e-3}),
              AllOf(HasSubstr("time limit"), HasSubstr("GiB")));
}

TEST(EnumerateTest, EstimateIsCloseToTheCount) {
  const auto e = Enumerator::Prepare(Load("matrix"), {});
  ASSERT_TRUE(e.ok());
  EXPECT_NEAR((*e)->estimate().graphs, 40278, 0.25 * 40278);
}

TEST(EnumerateTest, AWholeEnumerationIsEstimatedWithoutDoingIt) {
  const graph::Universe u = Load("matrix");
  // Counted: 42, 1116, 40278 and 1,820,088 graphs of 1 to 4 operators.
  const auto three = EstimateEnumeration(u, {.max_operators = 3});
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_NEAR(three->graphs, 41436, 0.25 * 41436);
  EXPECT_FALSE(three->extrapolated);
  EXPECT_GT(three->cpu_seconds, 0);
  // What cannot be looked at is extrapolated, whatever limits there are: they are for others.
  const auto eight = EstimateEnumeration(
      u, {.max_operators = 8, .memory_limit_bytes = 1, .time_limit_seconds = 1});
  ASSERT_TRUE(eight.ok()) << eight.status();
  EXPECT_TRUE(eight->extrapolated);
  EXPECT_GT(eight->graphs, 1e10);
  EXPECT_GT(eight->memory_bytes, 1e11);
  EXPECT_GT(eight->record_bytes, eight->graphs);
  EXPECT_TRUE(std::isfinite(eight->cpu_seconds));
}

TEST(EnumerateTest, AnEstimateNeverWalksAHugeUniverse) {
  // 32 operands and an operator that takes eight of them: 10^12 graphs of one operator.
  std::string text = "name: \"wide\" outputs: SINGLE max_operators: 2 max_elements: 1024\n";
  for (int k = 0; k < 32; ++k) {
    text += "input { name: \"a" + std::to_string(k) + "\" kind: ACTIVATION shape: [2, 2] }\n";
  }
  text += "operator { name: \"Concat\" arity: 8 attribute { name: \"axis\" value { int: 0 } } }\n";
  const auto u = convert::ParseUniverse(text, "wide");
  ASSERT_TRUE(u.ok()) << u.status();
  const auto e = EstimateEnumeration(*u, {});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_TRUE(e->extrapolated);
  EXPECT_GE(e->graphs, 1e12);
}

TEST(EnumerateTest, BadOptionsAreRefused) {
  graph::Universe u = Load("matrix");
  EXPECT_EQ(Enumerate(u, {.max_operators = 9}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Enumerate(u, {.shards = 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Enumerate(u, {.max_operators = 1, .scratch_directory = "/dev/null/x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  u.inputs[0].extents[0] = -4;
  EXPECT_EQ(Enumerate(u, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EnumerateTest, ReciprocalOfZeroIsNamed) {
  auto u = convert::ParseUniverse(
      "name: \"r\" outputs: SINGLE max_operators: 2 input { name: \"a\" kind: ACTIVATION shape: "
      "[2] } operator { name: \"Sub\" } operator { name: \"Reciprocal\" }",
      "r");
  ASSERT_TRUE(u.ok()) << u.status();
  const auto e = Enumerate(*u, {});
  EXPECT_EQ(e.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::Message(e.status()), HasSubstr("Reciprocal(Sub(a, a))"));
}

TEST(EnumerateTest, ProgressIsReportedAndCanStopTheWork) {
  std::set<std::string> phases;
  const Enumeration e =
      Enumerated(Load("matrix"), {.shards = 2, .progress = [&](const Progress& p) {
                                    EXPECT_LE(p.done, std::max<std::uint64_t>(p.total, 1) * 2);
                                    phases.emplace(p.phase);
                                    return true;
                                  }});
  EXPECT_EQ(phases, (std::set<std::string>{"values", "graphs", "classes", "samples"}));
  const auto stopped = Enumerate(
      Load("matrix"), {.progress = [](const Progress& p) { return p.phase != "samples"; }});
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
}

TEST(EnumerateTest, TemporaryStoreIsRemoved) {
  const std::string folder = ::testing::TempDir() + "/tenon-enumerate-test";
  std::filesystem::create_directories(folder);
  Enumerated(Load("matrix"), {.max_operators = 1, .scratch_directory = folder});
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace tenon::worker
