// From universe to pack: the figures that must come out, what the rules must be good for, and that
// nothing in a pack depends on how it was made.
#include "client/cli/generate.h"

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "coordinator/reduce/derive.h"
#include "core/rules/canonical.h"
#include "core/rules/float_class.h"
#include "core/rules/forms.h"
#include "core/rules/instance.h"

#include "core/rules/text.h"
#include "proto/convert/universe.h"
#include "tests/support/float_check.h"
#include "verifier/axioms/axioms.h"
#include "verifier/cert/check.h"

namespace tenon::cli {
namespace {

graph::Universe Load(const std::string& name) {
  auto universe = convert::LoadUniverse(name);
  EXPECT_TRUE(universe.ok()) << base::Message(universe.status());
  return *std::move(universe);
}
Generated Make(const std::string& universe, const GenerateOptions& options) {
  auto generated = Generate(Load(universe), options);
  EXPECT_TRUE(generated.ok()) << base::Message(generated.status());
  return *std::move(generated);
}
const Generated& Matrix() {
  static const Generated generated = Make("matrix", {});
  return generated;
}
const Generated& Conv() {
  static const Generated generated = Make("conv", {});
  return generated;
}

// Asks whether the rules of a pack derive others.
class Deriver {
 public:
  explicit Deriver(const pack::Content& content) : rules_(vocabulary_) {
    for (const pack::PackedRule& r : content.rules) {
      rules_.Add(std::make_shared<const rules::Rule>(r.rule));
    }
  }
  bool Derives(const rules::Rule& rule) {
    return reduce::DerivesRule(rules_, rule, {.commutative = true});
  }
  bool Derives(const std::string& text) {
    const auto rule = rules::ParseRule("rule r " + text);
    EXPECT_TRUE(rule.ok()) << text << ": " << base::Message(rule.status());
    return rule.ok() && Derives(*rule);
  }

 private:
  egraph::Vocabulary vocabulary_;
  egraph::RuleSet rules_;
};

void ExpectSound(const Generated& g) {
  const GenerateReport& r = g.report;
  EXPECT_EQ(r.unproved, 0u);
  EXPECT_EQ(r.underivable, 0u);
  EXPECT_EQ(r.proved + r.refuted + r.unproved, r.candidates);
  EXPECT_EQ(r.rules, pack::FamilyCount(g.content));
  EXPECT_EQ(r.forms, g.content.rules.size());
  rules::Dice dice(11);
  axioms::SecondOpinion second(axioms::BuiltIn());
  int derived = 0;
  for (const pack::PackedRule& p : g.content.rules) {
    // What it is said to be in floating point, it is.
    EXPECT_EQ(p.rule.float_class, rules::FloatClassOf(p.rule)) << p.rule.name;
    EXPECT_EQ(testing::CheckFloats(p.rule, p.rule.float_class, 12).broken, "") << p.rule.name;
    // What small axioms derive of it is so.
    if (const auto sizes = reduce::DistinctSizes(p.rule)) {
      const auto opinion = second.At(p.rule, *sizes);
      EXPECT_TRUE(opinion.ok()) << base::Message(opinion.status());
      if (opinion.ok() && opinion->derived()) {
        ++derived;
        EXPECT_NE(rules::CompareAt(p.rule, *sizes, dice), rules::Comparison::kDifferent)
            << p.rule.name;
      }
    }
    EXPECT_TRUE(rules::LooksTrue(p.rule, dice, 200)) << rules::PrintRule(p.rule);
    const auto checked = cert::Check(p.rule, p.certificate);
    EXPECT_TRUE(checked.ok()) << base::Message(checked.status());
  }
  EXPECT_GT(derived, int(g.content.rules.size()) / 4);
  const auto bytes = pack::EncodeContent(g.content);
  ASSERT_TRUE(bytes.ok()) << base::Message(bytes.status());
  EXPECT_TRUE(pack::DecodeContent(*bytes).ok());
}

TEST(GenerateTest, MatrixGivesTheKnownCountsAndFewRules) {
  const GenerateReport& r = Matrix().report;
  EXPECT_EQ(r.graphs_by_size, (std::vector<std::uint64_t>{42, 1116, 40278}));
  EXPECT_EQ(r.graphs, 41436u);
  EXPECT_EQ(r.classes, 14993u);
  EXPECT_EQ(r.equivalent_pairs, 92811u);
  EXPECT_LE(r.rules, 30u);
  EXPECT_GE(r.forms, r.rules + 5);
  EXPECT_GE(r.multi_output_rules, 1u);
  EXPECT_EQ(r.pairs_checked, 92814u);  // All, those with inputs too.
  EXPECT_EQ(r.mode, "exhaustive");
  ExpectSound(Matrix());
}

TEST(GenerateTest, MatrixToFourOperatorsGivesFewRulesThatDeriveEachClassAndAMillionPairs) {
  GenerateOptions options;
  options.max_operators = 4;
  const Generated four = Make("matrix", options);
  EXPECT_EQ(four.report.graphs_by_size, (std::vector<std::uint64_t>{42, 1116, 40278, 1817178}));
  EXPECT_LE(four.report.rules, 40u);
  EXPECT_GE(four.report.equivalent_pairs, 12'000'000u);
  EXPECT_GE(four.report.pairs_checked, 1'000'000u);
  ExpectSound(four);
}

TEST(GenerateTest, FormsAreOfTheFamilyOfTheirRule) {
  std::map<std::string, std::set<std::string>> families;
  for (const pack::PackedRule& p : Matrix().content.rules) {
    if (!p.form_of.empty()) continue;
    for (const rules::Rule& form : rules::Forms(p.rule)) {
      families[p.rule.name].insert(*rules::CanonicalBytes(form));
    }
  }
  for (const pack::PackedRule& p : Matrix().content.rules) {
    if (p.form_of.empty()) continue;
    EXPECT_TRUE(families[p.form_of].contains(*rules::CanonicalBytes(p.rule))) << p.rule.name;
  }
}

TEST(GenerateTest, MatrixDerivesTheTextbook) {
  const std::string path = std::string(TENON_SOURCE_DIR) + "/tests/rules/textbook.rules";
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const auto parsed = rules::ParseRules(text.str(), path);
  ASSERT_TRUE(parsed.ok()) << base::Message(parsed.status());
  ASSERT_EQ(parsed->size(), 10u);
  Deriver deriver(Matrix().content);
  for (const rules::ParsedRule& p : *parsed) {
    ASSERT_TRUE(p.rule.ok());
    EXPECT_TRUE(deriver.Derives(*p.rule)) << p.name;
  }
  EXPECT_FALSE(deriver.Derives("given a[m,m] b[m,m] source MatMul(a, b) target MatMul(b, a)"));
}

bool Contains(const pack::Content& content, const std::string& text) {
  const auto wanted = rules::ParseRule("rule r " + text);
  EXPECT_TRUE(wanted.ok()) << base::Message(wanted.status());
  const std::string bytes = *rules::CanonicalBytes(*wanted);
  return std::any_of(content.rules.begin(), content.rules.end(), [&](const pack::PackedRule& p) {
    return *rules::CanonicalBytes(p.rule) == bytes;
  });
}

TEST(GenerateTest, MatrixMergesTwoProductsOfOneMatrixOrOneBatch) {
  EXPECT_TRUE(Contains(Matrix().content,
                       "given a[m,n] b[n,k] c[n,r] source MatMul(a, b), MatMul(a, c) "
                       "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, end=k), "
                       "Slice(MatMul(a, Concat(b, c, axis=1)), axis=1, start=k, end=k+r)"));
  EXPECT_TRUE(Contains(Matrix().content,
                       "given a[l,m,n] b[n,k] c[n,r] source MatMul(a, b), MatMul(a, c) "
                       "target Slice(MatMul(a, Concat(b, c, axis=1)), axis=2, end=k), "
                       "Slice(MatMul(a, Concat(b, c, axis=1)), axis=2, start=k, end=k+r)"));
}

TEST(GenerateTest, ConvFindsWhatConvolutionsAreGoodFor) {
  ExpectSound(Conv());
  Deriver deriver(Conv().content);
  const std::string any = "strides=[s,t], pads=[p,q,u,v], dilations=[d,e]";
  const std::string attr = "attr s >= 1, t >= 1, p >= 0, q >= 0, u >= 0, v >= 0, d >= 1, e >= 1 ";
  const std::string wanted[] = {
      // Linear in the kernel and in the image.
      "given x[n,c,h,w] a[f,c,i,j] b[f,c,i,j] " + attr + "source Add(Conv(x, a, " + any +
          "), Conv(x, b, " + any + ")) target Conv(x, Add(a, b), " + any + ")",
      "given x[n,c,h,w] y[n,c,h,w] a[f,c,i,j] " + attr + "source Add(Conv(x, a, " + any +
          "), Conv(y, a, " + any + ")) target Conv(Add(x, y), a, " + any + ")",
      // Two convolutions of one image, merged along output channels.
      "given x[n,c,h,w] a[f,c,i,j] b[g,c,i,j] " + attr + "source Concat(Conv(x, a, " + any +
          "), Conv(x, b, " + any + "), axis=1) target Conv(x, Concat(a, b, axis=0), " + any + ")",
      // 1x1 enlarged to 3x3.
      "given x[n,c,h,w] a[f,c,1,1] attr s >= 1 source Conv(x, a, strides=[s,s]) target "
      "Conv(x, Enlarge(a, kernel_shape=[3,3]), strides=[s,s], pads=[1,1,1,1])",
      // Fusion with relu, with a residual, with both.
      "given x[n,c,h,w] a[f,c,i,j] " + attr + "source Relu(Conv(x, a, " + any +
          ")) target Conv(x, a, " + any + ", activation=relu)",
      "given x[n,c,h,w] a[f,c,3,3] r[n,f,h,w] source "
      "Relu(Add(Conv(x, a, pads=[1,1,1,1]), r)) target "
      "Conv(x, a, r, pads=[1,1,1,1], residual=1, activation=relu)",
      // Batches side by side.
      "given x[n,c,h,w] y[m,c,h,w] a[f,c,i,j] " + attr + "source Concat(Conv(x, a, " + any +
          "), Conv(y, a, " + any + "), axis=0) target Conv(Concat(x, y, axis=0), a, " + any + ")",
      // Input channels side by side.
      "given x[n,c,h,w] y[n,b,h,w] a[f,c,i,j] k[f,b,i,j] " + attr + "source Add(Conv(x, a, " + any +
          "), Conv(y, k, " + any + ")) target Conv(Concat(x, y, axis=1), Concat(a, k, axis=1), " +
          any + ")",
  };
  for (const std::string& text : wanted) EXPECT_TRUE(deriver.Derives(text)) << text;
  EXPECT_GE(Conv().report.multi_output_rules, 1u);
}

TEST(GenerateTest, ContentsDoNotDependOnShardsOrThreads) {
  GenerateOptions one, other;
  one.max_operators = other.max_operators = 2;
  one.threads = 1;
  other.threads = 3;
  other.shards = 5;
  EXPECT_EQ(*pack::EncodeContent(Make("matrix", one).content),
            *pack::EncodeContent(Make("matrix", other).content));
}

TEST(GenerateTest, CanonicalModeFindsRulesAsGood) {
  GenerateOptions options;
  options.mode = worker::Mode::kCanonical;
  const Generated canonical = Make("matrix", options);
  EXPECT_EQ(canonical.report.mode, "canonical");
  EXPECT_LT(canonical.report.graphs, Matrix().report.graphs);
  ExpectSound(canonical);
  Deriver deriver(canonical.content);
  for (const pack::PackedRule& p : Matrix().content.rules) {
    if (p.rule.source.size() > 1) continue;
    EXPECT_TRUE(deriver.Derives(p.rule)) << rules::PrintRule(p.rule);
  }
}

TEST(GenerateTest, ItCanBeStoppedInEveryPhase) {
  GenerateOptions options;
  options.max_operators = 2;
  std::vector<std::string> phases;
  options.progress = [&](const GenerateProgress& p) {
    if (phases.empty() || phases.back() != p.phase) phases.emplace_back(p.phase);
    return true;
  };
  Make("matrix", options);
  EXPECT_GE(phases.size(), 4u);
  for (const std::string& phase : phases) {
    options.progress = [&](const GenerateProgress& p) { return p.phase != phase; };
    const auto stopped = Generate(Load("matrix"), options);
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled) << phase;
  }
}

TEST(GenerateTest, AUniverseThatDoesNotFitIsRefusedBeforeItStarts) {
  GenerateOptions options;
  options.max_operators = 6;
  options.memory_limit_bytes = std::uint64_t{1} << 20;
  EXPECT_EQ(Generate(Load("matrix"), options).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tenon::cli
