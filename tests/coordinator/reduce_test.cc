// Minimising: small universes to the end, with provers that say no, and the whole matrix universe.
#include "coordinator/reduce/reduce.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "core/rules/lift.h"
#include "core/rules/text.h"
#include "proto/convert/universe.h"
#include "tests/support/small_universe.h"
#include "worker/enumerate.h"

namespace tenon::reduce {
namespace {

using graph::TermId;

std::vector<rules::Rule> Lift(const graph::Graph& g, graph::NodeId a, graph::NodeId b) {
  return rules::Lift(g, a, b);
}

// Classes in the flat form that enumerations have; only those with several members.
struct Flat {
  explicit Flat(const test::SmallUniverse& u) : terms(u.terms) {
    for (const auto& c : u.classes) {
      if (c.size() >= 2) Add(c);
    }
  }
  void Add(const std::vector<TermId>& more) {
    members.insert(members.end(), more.begin(), more.end());
    at.push_back(members.size());
  }
  Classes View() const { return {terms, at, members}; }
  const graph::TermTable& terms;
  std::vector<std::size_t> at{0};
  std::vector<TermId> members;
};

std::string Source(const rules::Rule& r) { return rules::PrintTerm(r.graph, r.source[0]); }

// Says yes to all but rules whose source is in `no`; remembers what it was asked.
struct FakeProver {
  std::set<std::string> no;
  Verdict otherwise = Verdict::kUnproved;
  std::vector<std::vector<std::string>> batches;
  Prover Get() {
    return [this](std::span<const rules::Rule* const> batch) -> StatusOr<std::vector<Verdict>> {
      std::vector<Verdict> out;
      batches.emplace_back();
      for (const rules::Rule* r : batch) {
        batches.back().push_back(Source(*r));
        out.push_back(no.contains(Source(*r)) ? otherwise : Verdict::kProved);
      }
      return out;
    };
  }
};

std::vector<std::string> Texts(const Reduction& r) {
  std::vector<std::string> out;
  for (const KeptRule& k : r.rules) out.push_back(rules::PrintRule(k.rule));
  return out;
}

// Pairs that the rules do not derive, asked without memory of earlier answers.
std::size_t CountUnderivable(const Classes& classes, const Reduction& r) {
  egraph::Vocabulary words;
  egraph::RuleSet rules(words);
  for (const KeptRule& k : r.rules) rules.Add(std::make_shared<const rules::Rule>(k.rule));
  egraph::Saturator saturator(rules);
  egraph::TermLoader loader(words, classes.terms);
  egraph::EGraph g(words, {.commutative = true});
  std::size_t count = 0;
  for (std::size_t c = 0; c < classes.count(); ++c) {
    for (TermId x : classes.of(c)) {
      for (TermId y : classes.of(c)) {
        if (x >= y) continue;
        g.Clear();
        const egraph::Goal goal{loader.Add(g, x), loader.Add(g, y)};
        const auto result = saturator.Run(g, {.iterations = 8, .nodes = 10'000}, goal);
        count += result.stop != egraph::SaturationResult::Stop::kGoal;
      }
    }
  }
  return count;
}

TEST(ReduceTest, MatrixToTwoOperators) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  const Flat flat(u);
  FakeProver prover;
  const auto r = Reduce(flat.View(), Lift, prover.Get());
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->pairs, u.pairs());
  EXPECT_EQ(r->underivable, 0u);
  EXPECT_EQ(CountUnderivable(flat.View(), *r), 0u);
  EXPECT_EQ(r->unproved + r->refuted, 0u);
  EXPECT_EQ(r->candidates, r->proved);
  EXPECT_EQ(r->candidates, prover.batches[0].size());
  EXPECT_EQ(r->rounds, 1u);  // Nothing was refused, so one batch was enough.
  EXPECT_LE(r->rules.size(), 25u);
  // No rule follows from the others.
  for (std::size_t k = 0; k < r->rules.size(); ++k) {
    egraph::Vocabulary words;
    egraph::RuleSet others(words);
    for (std::size_t o = 0; o < r->rules.size(); ++o) {
      if (o != k) others.Add(std::make_shared<const rules::Rule>(r->rules[o].rule));
    }
    EXPECT_FALSE(DerivesRule(others, r->rules[k].rule, {.commutative = true}))
        << rules::PrintRule(r->rules[k].rule);
  }
}

// With a sample, each class is still joined through its first member.
TEST(ReduceTest, ASampleOfPairsLeavesEachClassCheckedInFull) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  const Flat flat(u);
  FakeProver prover;
  const auto all = Reduce(flat.View(), Lift, prover.Get());
  const auto some = Reduce(flat.View(), Lift, prover.Get(), {.last_check = {.size_max = 100}});
  ASSERT_TRUE(all.ok() && some.ok());
  EXPECT_EQ(all->pairs_checked, all->pairs);
  EXPECT_LT(some->pairs_checked, all->pairs);
  EXPECT_EQ(some->underivable, 0u);
  // Without the rule for Relu(Relu(a)) the three classes that it joins are found open by either.
  prover.no = {"Relu(Relu(a))"};
  const auto open = Reduce(flat.View(), Lift, prover.Get(), {.last_check = {.size_max = 1}});
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->underivable, 3u);
}

TEST(PairSampleTest, EachClassIsVisitedInFullAndEveryPairHasItsChance) {
  const std::vector<std::size_t> sizes{0, 1, 2, 40, 3, 200};
  const std::uint64_t pairs = 1 + 780 + 3 + 19900, stars = 1 + 39 + 2 + 199;
  using Seen = std::map<std::tuple<std::size_t, std::size_t, std::size_t>, int>;
  const auto visit = [&](const PairSampleOptions& options, Seen& seen) {
    std::tuple<std::size_t, std::size_t, std::size_t> last{0, 0, 0};
    const std::uint64_t calls =
        VisitPairs(sizes, options, [&](std::size_t c, std::size_t i, std::size_t j) {
          EXPECT_LT(i, j);
          EXPECT_LT(j, sizes[c]);
          EXPECT_LT(last, std::tuple(c, j, i));
          last = {c, j, i};
          ++seen[{c, i, j}];
          return true;
        });
    return calls;
  };
  Seen all;
  EXPECT_EQ(visit({}, all), pairs);
  EXPECT_EQ(all.size(), pairs);

  Seen seen;
  constexpr int kSeeds = 400, kSize = 1000;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Seen once;
    const std::uint64_t calls = visit({.size_max = kSize, .seed = std::uint64_t(seed)}, once);
    EXPECT_LE(calls, stars + kSize);
    EXPECT_GE(calls, kSize);
    for (std::size_t c = 0; c < sizes.size(); ++c) {
      for (std::size_t j = 1; j < sizes[c]; ++j) EXPECT_EQ(once.count({c, 0, j}), 1u);
    }
    for (const auto& [pair, count] : once) seen[pair] += count;
  }
  // 400 draws of 1 in 20.7: a pair that is drawn less than twice or more than 50 times is not one
  // of equal chances.
  EXPECT_EQ(seen.size(), pairs);
  for (const auto& [pair, count] : seen) {
    const auto& [c, i, j] = pair;
    if (i == 0) continue;
    EXPECT_GE(count, 2) << c << " " << i << " " << j;
    EXPECT_LE(count, 50) << c << " " << i << " " << j;
  }
}

TEST(PairSampleTest, ItStopsWhenToldAndDoesWithoutPairs) {
  const std::vector<std::size_t> sizes{5, 5};
  EXPECT_EQ(VisitPairs(sizes, {}, [](auto, auto, auto) { return false; }), 1u);
  EXPECT_EQ(VisitPairs({}, {}, [](auto, auto, auto) { return true; }), 0u);
}

TEST(ReduceTest, EqualRunsAreEqual) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  const Flat flat(u);
  FakeProver first, second;
  const auto a = Reduce(flat.View(), Lift, first.Get());
  const auto b = Reduce(flat.View(), Lift, second.Get());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(Texts(*a), Texts(*b));
  EXPECT_EQ(first.batches, second.batches);
}

TEST(ReduceTest, WhatIsNotProvedIsNotKeptAndIsCounted) {
  // Nothing else derives the rule for Relu(Relu(a)).
  const test::SmallUniverse u = test::MatrixUniverse(2);
  const Flat flat(u);
  for (Verdict verdict : {Verdict::kRefuted, Verdict::kUnproved}) {
    FakeProver prover;
    prover.no = {"Relu(Relu(a))"};
    prover.otherwise = verdict;
    const auto r = Reduce(flat.View(), Lift, prover.Get());
    ASSERT_TRUE(r.ok()) << r.status();
    for (const std::string& text : Texts(*r)) EXPECT_EQ(text.find("Relu(Relu(a))"), text.npos);
    EXPECT_EQ(r->refuted, verdict == Verdict::kRefuted ? 1u : 0u);
    EXPECT_EQ(r->unproved, verdict == Verdict::kUnproved ? 1u : 0u);
    EXPECT_EQ(r->candidates, r->proved + 1);
    EXPECT_EQ(r->underivable, 3u);  // One for each input.
    EXPECT_EQ(CountUnderivable(flat.View(), *r), 3u);
    EXPECT_EQ(r->examples.size(), 3u);
    EXPECT_GT(r->rounds, 1u);
  }
}

TEST(ReduceTest, AFallBackTakesThePlaceOfAFormThatIsNotProved) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  const Flat flat(u);
  // The first form of every rule is refused; square matrices only are its fall-back.
  const auto lift = [](const graph::Graph& g, graph::NodeId a, graph::NodeId b) {
    std::vector<rules::Rule> forms = rules::Lift(g, a, b);
    if (forms.empty()) return forms;
    rules::Rule special = forms[0];
    base::Symbol first = 0;
    for (base::Symbol s = 1; s < special.graph.symbols().size(); ++s) {
      if (special.graph.symbols().kind(s) != base::SymbolKind::kDim) continue;
      if (first == 0) first = s;
      if (s != first) special.where.push_back(base::Eq(base::Poly::Var(s), base::Poly::Var(first)));
    }
    forms.resize(1);
    if (!special.where.empty()) forms.push_back(special);
    return forms;
  };
  FakeProver prover;
  prover.no = {"Transpose(MatMul(a, b))", "MatMul(Transpose(a), Transpose(b))"};
  const Prover inner = prover.Get();
  const Prover refuses_general = [&](std::span<const rules::Rule* const> batch) {
    auto verdicts = inner(batch);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      if (!batch[k]->where.empty()) (*verdicts)[k] = Verdict::kProved;
    }
    return verdicts;
  };
  const auto r = Reduce(flat.View(), lift, refuses_general);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->underivable, 0u);
  EXPECT_EQ(r->refuted + r->unproved, 0u);  // By its last form, the candidate is proved.
  EXPECT_TRUE(std::any_of(r->rules.begin(), r->rules.end(),
                          [](const KeptRule& k) { return !k.rule.where.empty(); }));
}

TEST(ReduceTest, FalseClassesLeaveNothingBehind) {
  const test::SmallUniverse u = test::MatrixUniverse(1);
  Flat flat(u);
  // Claims that a and b are equal to Relu(a), as a colliding fingerprint would.
  const TermId relu = [&] {
    for (TermId t = 3; t < TermId(u.terms.size()); ++t) {
      if (u.terms.Print(t) == "Relu(a)") return t;
    }
    return graph::kNoTerm;
  }();
  ASSERT_NE(relu, graph::kNoTerm);
  flat.Add({0, 1, relu});
  int asked = 0;
  const auto wrong = [&](const graph::Graph& g, graph::NodeId a, graph::NodeId b) {
    std::vector<rules::Rule> forms = rules::Lift(g, a, b);
    if (!forms.empty()) return forms;
    rules::Rule rule;
    rule.graph = g;
    rule.source = {g.node(a).is_input() ? b : a};
    rule.target = {g.node(a).is_input() ? a : b};
    return std::vector{rule};
  };
  const Prover refuse = [&](std::span<const rules::Rule* const> batch) {
    asked += int(batch.size());
    return StatusOr<std::vector<Verdict>>(std::vector<Verdict>(batch.size(), Verdict::kRefuted));
  };
  const auto r = Reduce(flat.View(), wrong, refuse);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->rules.empty());
  EXPECT_EQ(r->underivable, 3u);
  // Only Relu(a) => a is a rule at all; an input cannot replace another one.
  EXPECT_EQ(r->candidates, 1u);
  EXPECT_EQ(r->refuted, r->candidates);
  EXPECT_EQ(std::size_t(asked), r->candidates);
}

TEST(ReduceTest, ErrorsAndInterruptionsEndTheWork) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  const Flat flat(u);
  const auto failing = [](std::span<const rules::Rule* const>) -> StatusOr<std::vector<Verdict>> {
    return base::Unavailable("no verifier");
  };
  EXPECT_EQ(Reduce(flat.View(), Lift, failing).status().code(), absl::StatusCode::kUnavailable);
  const auto short_of = [](std::span<const rules::Rule* const>) -> StatusOr<std::vector<Verdict>> {
    return std::vector<Verdict>{};
  };
  EXPECT_EQ(Reduce(flat.View(), Lift, short_of).status().code(), absl::StatusCode::kInternal);
  FakeProver prover;
  for (std::string_view stop : {"candidates", "prune", "pairs"}) {
    const auto r = Reduce(flat.View(), Lift, prover.Get(),
                          {.progress = [&](const Progress& p) { return p.phase != stop; }});
    EXPECT_EQ(r.status().code(), absl::StatusCode::kCancelled) << stop;
  }
}

TEST(DeriveTest, RenamedPairsAreOneQuestion) {
  const test::SmallUniverse u = test::MatrixUniverse(2);
  const Flat flat(u);
  FakeProver prover;
  const auto r = Reduce(flat.View(), Lift, prover.Get());
  ASSERT_TRUE(r.ok());
  egraph::Vocabulary words;
  egraph::RuleSet rules(words);
  for (const KeptRule& k : r->rules) rules.Add(std::make_shared<const rules::Rule>(k.rule));
  PairDeriver deriver(words, u.terms, {.commutative = true});
  deriver.Use(rules);
  // Unequal terms of one class of shapes: the answer must be no, whatever was asked before.
  std::size_t no = 0;
  for (TermId x = 0; x < TermId(u.terms.size()); x += 3) {
    for (TermId y = x + 1; y < TermId(u.terms.size()); y += 41) {
      if (u.terms.type_id(x) != u.terms.type_id(y)) continue;
      const bool equal = std::any_of(u.classes.begin(), u.classes.end(), [&](const auto& c) {
        return std::binary_search(c.begin(), c.end(), x) &&
               std::binary_search(c.begin(), c.end(), y);
      });
      EXPECT_EQ(deriver.Derives(x, y), equal) << u.terms.Print(x) << " = " << u.terms.Print(y);
      no += !equal;
    }
  }
  EXPECT_GT(no, 1000u);
}

TEST(DeriveTest, DistinctInstancesHaveDistinctDims) {
  const auto rule = rules::ParseRule(
      "rule r given a[m,n] b[n,k] c[k,p] source MatMul(a, MatMul(b, c)) "
      "target MatMul(MatMul(a, b), c) both");
  ASSERT_TRUE(rule.ok());
  const auto g = DistinctInstance(*rule);
  ASSERT_TRUE(g.has_value());
  std::set<std::int64_t> dims;
  for (int k = 0; k < 3; ++k) {
    for (std::int64_t e : graph::Concrete(g->shape(g->input_node(k)))) dims.insert(e);
  }
  EXPECT_EQ(dims.size(), 4u);
}

TEST(ReduceTest, TheMatrixUniverseNeedsFewRules) {
  const auto universe = convert::LoadUniverse("matrix");
  ASSERT_TRUE(universe.ok()) << universe.status();
  const auto e = worker::Enumerate(*universe, {});
  ASSERT_TRUE(e.ok()) << e.status();
  FakeProver prover;
  const auto r = Reduce({e->table, e->class_at, e->class_members}, Lift, prover.Get());
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(e->equivalent_pairs, 92'811u);
  EXPECT_EQ(r->pairs, 92'814u);  // With inputs: Transpose(Transpose(a)) and a, for each of three.
  EXPECT_EQ(r->underivable, 0u);
  EXPECT_LE(r->rules.size(), 30u);

  // What the textbook says follows, at shapes that no two dims share.
  std::ifstream in(TENON_SOURCE_DIR "/tests/rules/textbook.rules");
  std::stringstream text;
  text << in.rdbuf();
  const auto textbook = rules::ParseRules(text.str(), "textbook.rules");
  ASSERT_TRUE(textbook.ok()) << textbook.status();
  ASSERT_EQ(textbook->size(), 10u);
  egraph::Vocabulary words;
  egraph::RuleSet kept(words);
  for (const KeptRule& k : r->rules) kept.Add(std::make_shared<const rules::Rule>(k.rule));
  for (const rules::ParsedRule& p : *textbook) {
    ASSERT_TRUE(p.rule.ok()) << p.name;
    EXPECT_TRUE(DerivesRule(kept, *p.rule, {.commutative = true})) << p.name;
  }
}

}  // namespace
}  // namespace tenon::reduce
