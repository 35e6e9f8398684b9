// Partial equivalence: where two programs agree, and corrections that are proved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/rules/text.h"
#include "tests/verifier/corpus.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"
#include "verifier/partial/gap.h"
#include "verifier/partial/partial.h"
#include "verifier/partial/picture.h"
#include "verifier/partial/sample.h"
#include "verifier/prove.h"

namespace tenon::partial {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using verifier::VerdictKind;

rules::Rule Pair(const std::string& name) {
  static const std::vector<verifier::CorpusRule>* corpus =
      new std::vector<verifier::CorpusRule>(verifier::ReadCorpus());
  for (const verifier::CorpusRule& c : *corpus) {
    if (c.file == "false/partial.rules" && c.parsed.name == name) return *c.parsed.rule;
  }
  ADD_FAILURE() << "no pair " << name;
  return {};
}

Found FindIn(const std::string& name) {
  auto found = Find(Pair(name));
  EXPECT_TRUE(found.ok()) << base::Message(found.status());
  return found.ok() ? *std::move(found) : Found{};
}

std::string Print(const Interval& i, const base::Symbols& symbols) {
  return "[" + symbols.Print(i.begin) + ", " + symbols.Print(i.end) + ")";
}

// The intervals along `axis` of regions that are not equal, in order, each once.
std::vector<std::string> Unequal(const Found& found, int axis) {
  std::vector<std::string> out;
  for (const Region& r : found.regions.regions) {
    if (r.state == State::kEqual) continue;
    const Axis& a = found.regions.axes[std::size_t(axis)];
    const Interval i = a.At(r.pieces[std::size_t(axis)]);
    const std::string text = Print(i, found.pair.graph.symbols());
    if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
  }
  return out;
}

void ExpectCertified(const rules::Rule& rule) {
  const auto certificate = certify::Certify(rule);
  ASSERT_TRUE(certificate.ok()) << rule.name << ": " << base::Message(certificate.status());
  EXPECT_TRUE(cert::Check(rule, *certificate).ok()) << rule.name;
}

TEST(LectureTest, SixOfEighteenRegionsAreUnequalAllInTheTwoColumnsAtTheSeam) {
  const Found found = FindIn("lecture_width_to_batch");
  EXPECT_EQ(found.regions.regions.size(), 18u);
  EXPECT_EQ(found.regions.Count(State::kUnequal), 6);
  EXPECT_EQ(found.regions.Count(State::kEqual), 12);
  EXPECT_THAT(Unequal(found, 3), ::testing::ElementsAre("[3, 4)", "[4, 5)"));
  EXPECT_THAT(Unequal(found, 2), ::testing::ElementsAre("[0, 1)", "[1, 5)", "[5, 6)"));
}

// Every element of both programs, evaluated: regions are neither too large nor too small.
TEST(LectureTest, RegionsAreThoseOfAnEvaluation) {
  const Found found = FindIn("lecture_width_to_batch");
  const auto sample = SampleAt(found.pair, {}, 7);
  ASSERT_TRUE(sample.ok()) << base::Message(sample.status());
  ASSERT_EQ(sample->differs.size(), 384u);
  for (std::size_t k = 0; k < sample->differs.size(); ++k) {
    const graph::Extents at = PositionOf(std::int64_t(k), sample->extents);
    EXPECT_EQ(sample->differs[k], at[3] == 3 || at[3] == 4) << k;
    int homes = 0;
    for (const Region& r : found.regions.regions) {
      if (!found.regions.Holds(r, at, [](const Poly& p) { return p.constant(); })) continue;
      ++homes;
      EXPECT_EQ(r.state == State::kUnequal, sample->differs[k]) << k;
    }
    EXPECT_EQ(homes, 1) << k;
  }
}

TEST(LectureTest, TheCorrectedProgramEqualsTheOriginalExactly) {
  const Found found = FindIn("lecture_width_to_batch");
  ASSERT_EQ(found.corrections.size(), 1u);
  const Correction& c = found.corrections[0];
  EXPECT_EQ(c.verdict.kind, VerdictKind::kProved);
  EXPECT_TRUE(c.corrected.recomputed.is_constant(96));
  EXPECT_TRUE(c.corrected.elements.is_constant(384));
  EXPECT_EQ(c.corrected.share, 0.25);
  ExpectCertified(c.corrected.rule);
  const auto sample = SampleAt(c.corrected.rule, {}, 7);
  ASSERT_TRUE(sample.ok());
  EXPECT_EQ(std::count(sample->differs.begin(), sample->differs.end(), true), 0);
}

TEST(LectureTest, WithTheKernelMirroredNothingIsEqualAndNothingIsCorrected) {
  const Found found = FindIn("lecture_mirrored");
  EXPECT_EQ(found.regions.regions.size(), 18u);
  EXPECT_EQ(found.regions.Count(State::kUnequal), 18);
  EXPECT_TRUE(found.corrections.empty());
  EXPECT_THAT(found.declined, HasSubstr("no region is equal"));
}

struct Theory {
  const char* pair;
  int axis;
  std::vector<std::string> slab;  // Intervals that are unequal.
  std::string recomputed;
  std::string where;  // Of the corrected rule, what was added last.
  std::string gap;    // Of the second correction; empty: none.
  bool gap_is_certified = true;
};

class AllShapesTest : public ::testing::TestWithParam<Theory> {};

TEST_P(AllShapesTest, TheSlabIsWhatTheTheorySaysAndTheCorrectionIsProvedAndCertified) {
  const Theory& theory = GetParam();
  const Found found = FindIn(theory.pair);
  EXPECT_EQ(found.regions.Count(State::kUnknown), 0);
  EXPECT_EQ(Unequal(found, theory.axis), theory.slab);
  ASSERT_EQ(found.corrections.size(), theory.gap.empty() ? 1u : 2u);
  const Correction& c = found.corrections[0];
  EXPECT_EQ(c.verdict.kind, VerdictKind::kProved) << c.verdict.reason;
  const base::Symbols& symbols = c.corrected.rule.graph.symbols();
  EXPECT_EQ(symbols.Print(c.corrected.recomputed), theory.recomputed);
  ASSERT_FALSE(c.corrected.rule.where.empty());
  EXPECT_EQ(base::Print(c.corrected.rule.where.back(), symbols), theory.where);
  ExpectCertified(c.corrected.rule);
  if (theory.gap.empty()) return;
  EXPECT_EQ(found.corrections[1].how, theory.gap);
  EXPECT_EQ(found.corrections[1].verdict.kind, VerdictKind::kProved);
  if (theory.gap_is_certified) ExpectCertified(found.corrections[1].corrected.rule);
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, AllShapesTest,
    ::testing::Values(
        Theory{
            "conv_height", 2, {"[H-1, H)", "[H, H+1)"}, "2*F*W*N", "H >= 3", "a gap of 1 along H"},
        Theory{"conv_symbolic_height",
               2,
               {"[H-a, H)", "[H, H+a)"},
               "2*F*W*N*a",
               "H >= 2*a+1",
               "a gap of a along H"},
        Theory{"two_convs",
               2,
               {"[H-2, H-1)", "[H-1, H)", "[H, H+1)", "[H+1, H+2)"},
               "4*F*W*N",
               "H >= 5",
               ""},
        Theory{"average_pool", 2, {"[H-1, H)", "[H, H+1)"}, "2*W*C*N", "H >= 3", ""},
        Theory{"average_pool_padding",
               2,
               {"[H-1, H)", "[H, H+1)"},
               "2*W*C*N",
               "H >= 3",
               "a gap of 1 along H"},
        Theory{"max_pool", 2, {"[H-1, H)", "[H, H+1)"}, "2*W*C*N", "H >= 3", ""},
        Theory{"width_to_batch", 3, {"[w-1, w)", "[w, w+1)"}, "2*F*H*N", "w >= 3", ""},
        Theory{"batch_to_height",
               2,
               {"[H-1, H)", "[0, 1)"},
               "4*F*W*M",
               "H >= 3",
               "a gap of 1 along H",
               false},
        Theory{"batch_to_height_symbolic",
               2,
               {"[H-a, H)", "[0, a)"},
               "4*F*W*M*a",
               "H >= 2*a+1",
               "a gap of a along H",
               false},
        Theory{"conv_strided_dilated", 2, {"[H-1, H)", "[H, H+1)"}, "2*F*W*N", "H >= 3", ""},
        Theory{"conv_relu_height",
               2,
               {"[H-1, H)", "[H, H+1)"},
               "2*F*W*N",
               "H >= 3",
               "a gap of 1 along H"}),
    [](const auto& tested) { return std::string(tested.param.pair); });

// An even image is wrong at its lower edge, an odd one at its upper edge, and nowhere else.
TEST(RegionsTest, ImagesThatAreJoinedInPairsDifferByParity) {
  const Found found = FindIn("batch_to_height");
  const Axis& batch = found.regions.axes[0];
  EXPECT_FALSE(batch.ordered());
  ASSERT_EQ(batch.pieces.size(), 2u);
  EXPECT_EQ(batch.pieces[0].digits, (std::vector<std::int64_t>{-1, 0}));
  std::map<int, std::vector<std::string>> rows;
  for (const Region& r : found.regions.regions) {
    if (r.state == State::kEqual) continue;
    const Axis& height = found.regions.axes[2];
    rows[r.pieces[0]].push_back(Print(height.At(r.pieces[2]), found.pair.graph.symbols()));
  }
  EXPECT_THAT(rows[0], ::testing::Each("[H-1, H)"));
  EXPECT_THAT(rows[1], ::testing::Each("[0, 1)"));
}

TEST(RegionsTest, TheBorderOfAProgramThatPadsEarlyIsARingOfWidthOne) {
  const Found found = FindIn("pad_early");
  EXPECT_EQ(found.regions.regions.size(), 25u);
  EXPECT_EQ(found.regions.Count(State::kUnequal), 16);
  for (const Region& r : found.regions.regions) {
    const bool border =
        r.pieces[2] == 0 || r.pieces[2] == 4 || r.pieces[3] == 0 || r.pieces[3] == 4;
    EXPECT_EQ(r.state, border ? State::kUnequal : State::kEqual);
  }
  ASSERT_EQ(found.corrections.size(), 1u);
  EXPECT_EQ(found.corrections[0].verdict.kind, VerdictKind::kProved);
  EXPECT_EQ(found.corrections[0].corrected.rule.graph.symbols().Print(
                found.corrections[0].corrected.recomputed),
            "2*F*W*N+2*F*H*N-4*F*N");
}

TEST(RegionsTest, EqualProgramsHaveEqualRegionsOnly) {
  const auto rule = rules::ParseRule(
      "rule r\ngiven x[N,C,H,W] y[N,C,H,W]\nweight k[F,C,3,3]\n"
      "source Concat(Conv(x, k, pads=[1,1,1,1]), Conv(y, k, pads=[1,1,1,1]), axis=0)\n"
      "target Conv(Concat(x, y, axis=0), k, pads=[1,1,1,1])\n");
  ASSERT_TRUE(rule.ok());
  const auto found = Find(*rule);
  ASSERT_TRUE(found.ok()) << base::Message(found.status());
  EXPECT_TRUE(found->regions.all_equal());
  EXPECT_TRUE(found->corrections.empty());
  EXPECT_THAT(found->declined, HasSubstr("equal everywhere"));
}

TEST(RegionsTest, WhatTheMethodDoesNotReachIsSaid) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"rule r\ngiven a[m,n]\nsource Relu(a), Neg(a)\ntarget Neg(a), Relu(a)\n", "one output"},
      {"rule r\ngiven a[m,n]\nsource Relu(a)\ntarget Transpose(a)\n", "different shapes"},
      {"rule r\ngiven a[m,n]\nattr s >= 1\nsource Relu(a)\ntarget Relu(a)\nwhere s < 1\n",
       "no sizes"},
  };
  for (const auto& c : cases) {
    const auto rule = rules::ParseRule(c.text);
    ASSERT_TRUE(rule.ok()) << base::Message(rule.status());
    const auto found = Find(*rule);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition) << c.text;
    EXPECT_THAT(base::Message(found.status()), HasSubstr(c.says));
  }
}

// A slab that misses a row on one side, an error that regions could make.
TEST(CorrectionTest, ASlabOneTooSmallIsRefuted) {
  const rules::Rule given = Pair("conv_symbolic_height");
  for (const bool before : {true, false}) {
    rules::Rule pair = given;
    auto sizes = Sizes::Of(pair);
    ASSERT_TRUE(sizes.ok());
    auto regions = FindRegions(pair, **sizes);
    ASSERT_TRUE(regions.ok());
    for (Region& r : regions->regions) {
      const Interval rows = regions->axes[2].At(r.pieces[2]);
      const std::string at = pair.graph.symbols().Print(before ? rows.end : rows.begin);
      if (at == "H" && r.state == State::kUnequal) r.state = State::kEqual;
    }
    const auto corrected = Recompute(pair, *regions, **sizes);
    ASSERT_TRUE(corrected.ok()) << base::Message(corrected.status());
    const auto verdict = verifier::Prove(corrected->rule, {});
    ASSERT_TRUE(verdict.ok());
    EXPECT_EQ(verdict->kind, VerdictKind::kRefuted);
  }
}

TEST(CorrectionTest, AGapOneTooSmallIsRefuted) {
  rules::Rule pair = Pair("conv_symbolic_height");
  const base::Symbol h = pair.graph.symbols().Find("H"), a = pair.graph.symbols().Find("a");
  pair.where.push_back(base::Ge(Poly::Var(a), 1));
  for (const int missing : {0, 1}) {
    const auto corrected = WithGap(pair, {.along = h, .zeros = Poly::Var(a) - missing});
    ASSERT_TRUE(corrected.ok()) << base::Message(corrected.status());
    const auto verdict = verifier::Prove(corrected->rule, {});
    ASSERT_TRUE(verdict.ok());
    EXPECT_EQ(verdict->kind, missing == 0 ? VerdictKind::kProved : VerdictKind::kRefuted);
  }
}

TEST(PictureTest, EachRegionIsOneRectangleInTheColorOfItsState) {
  const Found found = FindIn("lecture_width_to_batch");
  const std::string svg = Picture(found.pair, found.regions);
  const auto count = [&](const std::string& what) {
    int n = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("<rect "), 18);
  EXPECT_EQ(count("fill=\"#f2b8ae\""), 6);
  EXPECT_THAT(svg, HasSubstr("12 of 18 regions are equal"));
  EXPECT_THAT(svg, Not(HasSubstr("script")));
  EXPECT_EQ(svg, Picture(found.pair, found.regions));
}

}  // namespace
}  // namespace tenon::partial
