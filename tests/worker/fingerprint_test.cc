#include "worker/fingerprint.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/eval/eval.h"
#include "core/graph/universe.h"
#include "proto/convert/universe.h"
#include "worker/enumerate.h"
#include "worker/samples.h"

namespace tenon::worker {
namespace {

struct Held {
  std::vector<std::uint64_t> residue;
  std::vector<double> approx;
  explicit Held(std::int64_t elements)
      : residue(std::size_t(elements) * kLanes), approx(std::size_t(elements) * kLanes) {}
  Value view() const { return {residue.data(), approx.data()}; }
};

Held Random(std::uint64_t seed, std::int64_t elements) {
  base::SplitMix64 random(seed);
  Held h(elements);
  for (std::uint64_t& r : h.residue) r = random.Below(eval::kPrime);
  return h;
}

TEST(FingerprintTest, EveryResidueCounts) {
  const Hasher hasher(1, 12);
  Held h = Random(5, 12);
  const Fingerprint f = hasher.Hash({3, 4}, h.view());
  std::set<Fingerprint> all{f};
  for (std::uint64_t& r : h.residue) {
    const std::uint64_t was = r;
    for (const std::uint64_t other :
         {(was + 1) % eval::kPrime, std::uint64_t{0}, eval::kPrime - 1}) {
      r = other;
      EXPECT_TRUE(all.insert(hasher.Hash({3, 4}, h.view())).second);
    }
    r = was;
  }
  EXPECT_EQ(hasher.Hash({3, 4}, h.view()), f);
}

TEST(FingerprintTest, ShapesTellEqualElementsApart) {
  const Hasher hasher(1, 12);
  const Held h(12);  // Zeros: only the shape is left.
  std::set<Fingerprint> all;
  for (const graph::Extents& e : std::vector<graph::Extents>{
           {12}, {3, 4}, {4, 3}, {2, 6}, {1, 12}, {12, 1}, {1, 3, 4}, {3, 2, 2}, {3, 1, 4}}) {
    EXPECT_TRUE(all.insert(hasher.Hash(e, h.view())).second);
  }
}

TEST(FingerprintTest, DoublesDecideSignsAndAreNotHashed) {
  const Hasher hasher(1, 4);
  Held h = Random(3, 4);
  const Fingerprint f = hasher.Hash({4}, h.view());
  for (double& d : h.approx) d = 1e300;
  EXPECT_EQ(hasher.Hash({4}, h.view()), f);
}

TEST(FingerprintTest, SeedsGiveOtherFingerprints) {
  const Held h = Random(3, 4);
  EXPECT_EQ(Hasher(1, 4).Hash({4}, h.view()), Hasher(1, 9).Hash({4}, h.view()));
  EXPECT_NE(Hasher(1, 4).Hash({4}, h.view()), Hasher(2, 4).Hash({4}, h.view()));
}

TEST(FingerprintTest, FirstBitsAreSpreadEvenly) {
  const Hasher hasher(1, 1);
  std::vector<int> buckets(16, 0);
  for (std::uint64_t seed = 0; seed < 16000; ++seed) {
    ++buckets[std::size_t(hasher.Hash({1}, Random(seed, 1).view()).hi >> 60)];
  }
  for (const int n : buckets) EXPECT_NEAR(n, 1000, 200);
}

TEST(FingerprintTest, OutputsCombineInAnyOrderAndAreCounted) {
  const Fingerprint a{1, 2}, b{3, 4}, c{5, 6};
  const auto combine = [](std::vector<Fingerprint> f) { return CombineOutputs(f); };
  EXPECT_EQ(combine({a}), a);
  EXPECT_EQ(combine({a, b, c}), combine({c, a, b}));
  const std::set<Fingerprint> all{combine({a}),      combine({b}),    combine({a, b}),
                                  combine({a, c}),   combine({a, a}), combine({a, a, b}),
                                  combine({a, b, b})};
  EXPECT_EQ(all.size(), 7u);
}

TEST(FingerprintTest, MoreSamplesAreChainedInOrder) {
  const Fingerprint a{1, 2}, b{3, 4};
  EXPECT_NE(Chain(Chain({}, a), b), Chain(Chain({}, b), a));
  EXPECT_NE(Chain(Chain({}, a), b), Chain({}, a));
}

// The evaluator's exact reading of a whole graph has the fingerprint that was put together term by
// term: by another way through the code, and with other numbers for the nodes.
TEST(FingerprintTest, GraphsReevaluatedAsAWholeKeepTheirClass) {
  const auto u = convert::LoadUniverse("matrix");
  ASSERT_TRUE(u.ok());
  const auto e = Enumerate(*u, {.max_operators = 2});
  ASSERT_TRUE(e.ok()) << e.status();
  const std::vector<InputValue> samples = MainSamples(*u, 99);
  const Hasher hasher(99, u->max_elements);
  std::set<Fingerprint> seen;
  std::size_t listed = 0;
  std::vector<bool> in_class(e->table.size(), false);
  const auto fingerprint = [&](TermId id) {
    graph::Graph g = e->table.ToGraph(std::vector<TermId>{id});
    Held value(graph::ElementCount(e->table.extents(id)));
    for (std::size_t l = 0; l < kLanes; ++l) {
      std::vector<eval::Tensor<eval::Exact>> inputs;
      for (std::size_t k = 0; k < samples.size(); ++k) {
        eval::Tensor<eval::Exact> t{u->inputs[k].extents, {}};
        for (std::size_t i = l; i < samples[k].residue.size(); i += kLanes) {
          t.data.push_back({samples[k].residue[i], samples[k].approx[i]});
        }
        inputs.push_back(std::move(t));
      }
      const auto out = eval::Evaluate(g, g.outputs(), inputs, 1);
      EXPECT_TRUE(out.ok()) << out.status();
      for (std::size_t i = 0; i < (*out)[0].data.size(); ++i) {
        value.residue[i * kLanes + l] = (*out)[0].data[i].residue;
      }
    }
    return hasher.Hash(e->table.extents(id), value.view());
  };
  for (std::size_t c = 0; c < e->class_count(); ++c) {
    const Fingerprint f = fingerprint(e->members(c)[0]);
    EXPECT_TRUE(seen.insert(f).second);
    for (TermId id : e->members(c)) {
      EXPECT_EQ(fingerprint(id), f) << e->table.Print(id);
      in_class[std::size_t(id)] = true;
      ++listed;
    }
  }
  for (std::size_t k = 0; k < e->table.size(); ++k) {
    if (!in_class[k]) {
      EXPECT_TRUE(seen.insert(fingerprint(static_cast<TermId>(k))).second);
    }
  }
  EXPECT_GT(listed, 800u);
}

TEST(SamplesTest, AreFractionsOfAllScalesAndSigns) {
  const auto u = convert::LoadUniverse("matrix");
  ASSERT_TRUE(u.ok());
  int all_negative = 0, all_positive = 0, small = 0, large = 0;
  for (int round = 0; round < 16; ++round) {
    for (const InputValue& v : BiasedSamples(*u, 4, round)) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        int negative = 0, count = 0;
        for (std::size_t k = l; k < v.approx.size(); k += kLanes) {
          EXPECT_EQ(eval::FromDouble(v.approx[k]).residue, v.residue[k]);
          EXPECT_NE(v.residue[k], 0u);
          negative += v.approx[k] < 0 ? 1 : 0;
          small += std::abs(v.approx[k]) < 0.1 ? 1 : 0;
          large += std::abs(v.approx[k]) > 10 ? 1 : 0;
          ++count;
        }
        all_negative += negative == count ? 1 : 0;
        all_positive += negative == 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GE(all_negative, 5);
  EXPECT_GE(all_positive, 5);
  EXPECT_GE(small, 300);
  EXPECT_GE(large, 300);
}

}  // namespace
}  // namespace tenon::worker
