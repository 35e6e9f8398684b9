// The random filter of partial equivalence: few positions, and an error rate that is bounded.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rules/text.h"
#include "tests/verifier/corpus.h"
#include "verifier/partial/filter.h"
#include "verifier/partial/modular.h"
#include "verifier/partial/sample.h"
#include "verifier/screen.h"

namespace tenon::partial {
namespace {

using graph::NodeId;

rules::Rule Parsed(const std::string& text) {
  auto rule = rules::ParseRule(text);
  EXPECT_TRUE(rule.ok()) << base::Message(rule.status());
  return rule.ok() ? *std::move(rule) : rules::Rule{};
}

rules::Rule Pair(const std::string& name) {
  for (const verifier::CorpusRule& c : verifier::ReadCorpus()) {
    if (c.file == "false/partial.rules" && c.parsed.name == name) return *c.parsed.rule;
  }
  ADD_FAILURE() << "no pair " << name;
  return {};
}

graph::Graph AtSizes(const rules::Rule& rule, const std::vector<std::int64_t>& sizes) {
  const std::vector<NodeId> roots{rule.source[0], rule.target[0]};
  auto g = graph::Instantiate(rule.graph, roots, sizes);
  EXPECT_TRUE(g.ok()) << base::Message(g.status());
  return g.ok() ? *std::move(g) : graph::Graph{};
}

Regions RegionsOf(rules::Rule& pair) {
  auto sizes = Sizes::Of(pair);
  EXPECT_TRUE(sizes.ok());
  auto regions = FindRegions(pair, **sizes);
  EXPECT_TRUE(regions.ok()) << base::Message(regions.status());
  return regions.ok() ? *std::move(regions) : Regions{};
}

TEST(FilterTest, SixtySixOf384PositionsFindTheRegionsOfTheLecture) {
  for (const bool mirrored : {false, true}) {
    rules::Rule pair = Pair(mirrored ? "lecture_mirrored" : "lecture_width_to_batch");
    const Regions regions = RegionsOf(pair);
    ASSERT_TRUE(regions.filtered.has_value());
    EXPECT_EQ(regions.filtered->positions, 66);
    EXPECT_EQ(regions.filtered->elements, 384);
    EXPECT_EQ(regions.filtered->degree, 2);
    EXPECT_EQ(regions.filtered->prime, eval::kPrime);
    EXPECT_DOUBLE_EQ(regions.filtered->bound(), 2.0 / double(eval::kPrime));
    for (std::size_t k = 0; k < regions.regions.size(); ++k) {
      EXPECT_EQ(regions.filtered->differs[k], regions.regions[k].state == State::kUnequal) << k;
    }
  }
}

TEST(FilterTest, ProgramsThatAreNoPolynomialsAreNotFiltered) {
  rules::Rule pair = Pair("max_pool");
  EXPECT_FALSE(RegionsOf(pair).filtered.has_value());
  pair = Pair("conv_relu_height");
  EXPECT_FALSE(RegionsOf(pair).filtered.has_value());
  const rules::Rule rule = Parsed("rule r\ngiven a[2,2]\nsource Exp(a)\ntarget a\n");
  EXPECT_EQ(base::Message(DegreeOf(rule.graph, rule.source[0]).status()),
            "Exp is no polynomial in its operands");
}

TEST(FilterTest, DegreesAddUpInProductsOnly) {
  const struct {
    const char* term;
    int degree;
  } cases[] = {
      {"Add(a, b)", 1},
      {"Mul(a, Sub(b, a))", 2},
      {"MatMul(MatMul(a, b), Transpose(MatMul(a, b)))", 4},
      {"Concat(a, Mul(a, a), axis=0)", 2},
      {"ReduceMean(Mul(a, Neg(b)), axis=0)", 2},
  };
  for (const auto& c : cases) {
    const rules::Rule rule =
        Parsed("rule r\ngiven a[2,2] b[2,2]\nsource " + std::string(c.term) + "\ntarget a\n");
    const auto degree = DegreeOf(rule.graph, rule.source[0]);
    ASSERT_TRUE(degree.ok()) << base::Message(degree.status());
    EXPECT_EQ(*degree, c.degree) << c.term;
  }
}

// The upper end of the 99 % interval of a rate (Wilson's, one-sided).
double UpperLimit(int misses, int trials) {
  constexpr double z = 2.3263478740408408;
  const double n = trials, rate = misses / n;
  const double centre = rate + z * z / (2 * n);
  return (centre + z * std::sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))) / (1 + z * z / n);
}

// How often a position at which the programs differ is taken for equal.
void ExpectRate(const rules::Rule& pair, const graph::Extents& position, int degree, int trials) {
  const graph::Graph g = AtSizes(pair, std::vector<std::int64_t>(pair.graph.symbols().size(), 0));
  ASSERT_EQ(std::max(*DegreeOf(g, g.outputs()[0]), *DegreeOf(g, g.outputs()[1])), degree);
  for (const std::uint64_t prime : {5u, 7u, 11u, 13u, 31u, 61u}) {
    int misses = 0;
    for (int k = 0; k < trials; ++k) {
      const Modular modular(g, prime, std::uint64_t(k) * 1000 + prime);
      misses += modular.At(g.outputs()[0], position) == modular.At(g.outputs()[1], position);
    }
    const double limit = UpperLimit(misses, trials), bound = double(degree) / double(prime);
    EXPECT_LE(limit, 1.1 * bound) << pair.name << " mod " << prime;
    // The tests do err: the bound is no matter of form.
    EXPECT_GT(misses, 0) << pair.name << " mod " << prime;
    fmt::print("{} mod {}: {:.5f} measured, below {:.5f} with 99 %, bound {:.5f}\n", pair.name,
               prime, double(misses) / trials, limit, bound);
  }
}

TEST(ErrorRateTest, ASeamIsMissedAtMostAsOftenAsTheBoundSays) {
  ExpectRate(Pair("lecture_width_to_batch"), {1, 2, 3, 4}, 2, 8000);
}

// Products of different inputs come closest to the bound: 1 - (1 - 1/p)^d.
TEST(ErrorRateTest, AProductIsMissedNearlyAsOftenAsTheBoundSays) {
  ExpectRate(Parsed("rule two\ngiven x[1] y[1]\nsource Mul(x, y)\ntarget Mul(x, Sub(y, y))\n"), {0},
             2, 60'000);
  ExpectRate(Parsed("rule four\ngiven x[1] y[1] z[1] u[1]\nsource Mul(Mul(x, y), Mul(z, u))\n"
                    "target Mul(Mul(x, y), Mul(z, Sub(u, u)))\n"),
             {0}, 4, 60'000);
}

// Another reading of the operators than the evaluator's: sides of proved rules are equal, and what
// the tester refutes differs somewhere.
TEST(ModularTest, AgreesWithProofsAndCounterexamples) {
  int equal = 0, different = 0;
  for (const verifier::CorpusRule& c : verifier::ReadCorpus()) {
    if (!c.parsed.rule.ok() || c.parsed.rule->source.size() != 1) continue;
    const rules::Rule& rule = *c.parsed.rule;
    const bool refuted = c.parsed.expect == rules::Expect::kRefuted;
    if (!refuted && c.parsed.expect != rules::Expect::kProved) continue;
    if (!DegreeOf(rule.graph, rule.source[0]).ok() || !DegreeOf(rule.graph, rule.target[0]).ok()) {
      continue;
    }
    std::optional<std::vector<std::int64_t>> sizes;
    if (refuted) {
      const auto found = verifier::Screen(rule, {.seed = verifier::SeedOf(rule)}).counterexample;
      if (!found) continue;
      sizes.emplace(rule.graph.symbols().size(), 0);
      for (const auto& [name, value] : found->sizes) {
        (*sizes)[rule.graph.symbols().Find(name)] = value;
      }
    } else {
      sizes = verifier::FindSizes(rule, 1);
    }
    if (!sizes) continue;
    const graph::Graph g = AtSizes(rule, *sizes);
    const graph::Extents extents = graph::Concrete(g.shape(g.outputs()[0]));
    if (graph::ElementCount(extents) > 300) continue;
    const Modular modular(g, eval::kPrime, 5);
    bool differs = false, known = true;
    for (std::int64_t n = graph::ElementCount(extents); n-- > 0;) {
      const auto a = modular.At(g.outputs()[0], PositionOf(n, extents));
      const auto b = modular.At(g.outputs()[1], PositionOf(n, extents));
      known = known && a && b;
      differs = differs || a != b;
    }
    if (!known) continue;
    EXPECT_EQ(differs, refuted) << c.file << ": " << c.parsed.name;
    ++(refuted ? different : equal);
  }
  EXPECT_GT(equal, 60);
  EXPECT_GT(different, 60);
}

}  // namespace
}  // namespace tenon::partial
