#include <algorithm>
#include <cmath>
#include <random>
#include <stack>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optimizer/explain/layout.h"
#include "optimizer/explain/picture.h"
#include "optimizer/explain/report.h"
#include "tests/optimizer/lecture_graphs.h"
#include "tests/optimizer/rule_files.h"

namespace tenon::optimizer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Whether tags are balanced and attributes quoted; names the first misfit.
std::string XmlError(const std::string& xml) {
  std::stack<std::string> open;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return "a tag has no end";
    std::string tag = xml.substr(at + 1, end - at - 1);
    if (std::ranges::count(tag, '"') % 2 != 0 || tag.find('<') != std::string::npos) {
      return "bad tag: " + tag;
    }
    const bool closing = tag.starts_with('/'), single = tag.ends_with('/');
    std::string name = tag.substr(closing ? 1 : 0);
    name = name.substr(0, name.find_first_of(" /"));
    if (closing) {
      if (open.empty() || open.top() != name) return "unbalanced: " + tag;
      open.pop();
    } else if (!single) {
      open.push(name);
    }
  }
  return open.empty() ? "" : "not closed: " + open.top();
}

Report LectureReport() {
  const graph::Graph g = ResnetBlock();
  const auto rules = LectureRules();
  auto device = OpenDevice("roofline:h100");
  CHECK(device.ok());
  const auto result = OptimizeGraph(g, rules, **device, {});
  CHECK(result.ok());
  Report report = MakeReport(g, *result, rules);
  report.model = "block.onnx";
  report.device = (*device)->name();
  report.alpha = 1.5;
  report.seconds = 0.25;
  return report;
}

TEST(LayoutTest, BoxesDoNotOverlapAndEdgesGoDown) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const int count = 1 + int(random() % 40);
    std::vector<LayoutSize> sizes;
    std::vector<std::vector<int>> operands;
    for (int k = 0; k < count; ++k) {
      sizes.push_back({40 + double(random() % 120), 20 + double(random() % 40)});
      std::vector<int> from;
      for (std::uint64_t n = k == 0 ? 0 : random() % 4; n > 0; --n) {
        from.push_back(int(random() % std::uint64_t(k)));
      }
      operands.push_back(from);
    }
    const Layout layout = LayOut(sizes, operands);
    const auto apart = [](double a, double b, double size_a, double size_b) {
      return std::abs(a - b) >= (size_a + size_b) / 2 - 1e-6;
    };
    for (int a = 0; a < count; ++a) {
      const Point& pa = layout.centres[std::size_t(a)];
      const LayoutSize& sa = sizes[std::size_t(a)];
      EXPECT_GE(pa.x - sa.width / 2, -1e-6);
      EXPECT_LE(pa.x + sa.width / 2, layout.width + 1e-6);
      EXPECT_GE(pa.y - sa.height / 2, -1e-6);
      EXPECT_LE(pa.y + sa.height / 2, layout.height + 1e-6);
      for (int b = 0; b < a; ++b) {
        const Point& pb = layout.centres[std::size_t(b)];
        const LayoutSize& sb = sizes[std::size_t(b)];
        EXPECT_TRUE(apart(pa.x, pb.x, sa.width, sb.width) ||
                    apart(pa.y, pb.y, sa.height, sb.height))
            << "seed " << seed << ": boxes " << a << " and " << b;
      }
      ASSERT_EQ(layout.edges[std::size_t(a)].size(), operands[std::size_t(a)].size());
      for (const auto& edge : layout.edges[std::size_t(a)]) {
        for (std::size_t p = 1; p < edge.size(); ++p) EXPECT_GT(edge[p].y, edge[p - 1].y);
      }
    }
  }
}

TEST(LayoutTest, AChainIsAStraightLine) {
  const Layout layout = LayOut({{50, 20}, {90, 20}, {50, 20}}, {{}, {0}, {1}});
  EXPECT_NEAR(layout.centres[0].x, layout.centres[1].x, 1e-6);
  EXPECT_NEAR(layout.centres[1].x, layout.centres[2].x, 1e-6);
}

// Bends in every layer for each of these edges would be four and a half million.
TEST(LayoutTest, DeepGraphsWithLongEdgesStaySmall) {
  std::vector<LayoutSize> sizes(3000, {50, 20});
  std::vector<std::vector<int>> operands{{}};
  for (int k = 1; k < 3000; ++k) operands.push_back({k - 1, 0});
  const Layout layout = LayOut(sizes, operands);
  std::size_t points = 0;
  for (const auto& edges : layout.edges) {
    for (const auto& edge : edges) points += edge.size();
  }
  EXPECT_LT(points, 50'000u);
  EXPECT_LT(layout.width, 5'000);
}

TEST(PictureTest, WeightsAreTextInAModelAndBoxesInARule) {
  const graph::Graph g = ResnetBlock();
  const Picture picture = PictureOf(g, g.outputs(), {.title = "t"});
  EXPECT_EQ(picture.boxes.size(), 7u + 2u);  // Operators, the input and the output.
  const auto conv = std::ranges::find(picture.boxes, "Conv", &Box::label);
  ASSERT_NE(conv, picture.boxes.end());
  EXPECT_THAT(conv->detail, HasSubstr("weight 64 x 64 x 3 x 3"));
  const auto rules = LectureRules();
  const std::vector<Picture> sides = PicturesOf(*rules[0].rule);
  ASSERT_EQ(sides.size(), 2u);
  EXPECT_EQ(sides[0].boxes.size(), 5u);  // x, k, Conv, Relu, output.
  EXPECT_EQ(sides[1].boxes.size(), 4u);
  EXPECT_EQ(sides[0].boxes[0].type, "n x c x h x w");
}

TEST(PictureTest, DifferencesAreWhatHasNoCounterpart) {
  Builder b;
  const auto x = b.Activation("x", {4, 4});
  const auto a = b.Add(ops::Relu{}, {x}), t = b.Add(ops::Tanh{}, {a});
  Picture before = PictureOf(b.g, std::vector{a}, {.title = "before"});
  Picture after = PictureOf(b.g, std::vector{t}, {.title = "after"});
  MarkDifferences(before, after);
  for (const Box& box : before.boxes) EXPECT_FALSE(box.fresh) << box.label;
  for (const Box& box : after.boxes) EXPECT_EQ(box.fresh, box.label == "Tanh") << box.label;
}

TEST(PictureTest, SvgIsWellFormedAndForeignTextIsEscaped) {
  const Report report = LectureReport();
  const std::string svg =
      ToSvg(std::vector{report.before, report.after}, {.title = "a < b & \"c\""});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
  EXPECT_THAT(svg, HasSubstr("residual=1"));

  Builder b;
  const auto foreign =
      b.Add(ops::Opaque{.key = 1, .output = 0, .shape = {2}}, {b.Activation("<script>", {2})});
  PictureOptions options;
  options.opaque_name = [](const ops::Opaque&) { return std::string("A<B>&\"\x01"); };
  const Picture picture = PictureOf(b.g, std::vector{foreign}, options);
  const std::string escaped = ToSvg(std::vector{picture}, {});
  EXPECT_EQ(XmlError(escaped), "");
  EXPECT_THAT(escaped, AllOf(HasSubstr("&lt;script&gt;"), HasSubstr("A&lt;B&gt;&amp;&quot; "),
                             Not(HasSubstr("<script>"))));
  EXPECT_THAT(ToDot(std::vector{picture}), HasSubstr("A<B>&\\\""));
  EXPECT_EQ(XmlError(ToSvg({}, {})), "");
}

TEST(PictureTest, EveryLectureRuleCanBeDrawn) {
  for (const SearchRule& r : LectureRules()) {
    const auto sides = PicturesOf(*r.rule);
    EXPECT_EQ(XmlError(ToSvg(sides, {.title = r.rule->name})), "") << r.rule->name;
    EXPECT_THAT(ToDot(sides), HasSubstr("cluster_1"));
  }
}

TEST(ReportTest, ListsTheRulesInOrder) {
  const Report report = LectureReport();
  ASSERT_FALSE(report.steps.empty());
  EXPECT_EQ(report.steps.front().pack, "lecture.rules");
  EXPECT_NEAR(report.steps.back().cost_us, report.cost_after_us, 1e-9);
  const std::string json = ToJson(report);
  EXPECT_THAT(json, AllOf(HasSubstr("\"rules\": ["), HasSubstr("\"merge_convs\""),
                          HasSubstr("\"max_relative_error\": null")));
}

TEST(ReportTest, ReadsBackWhatItWrote) {
  Report report = LectureReport();
  report.notes = {"a \xff byte that is not UTF-8"};
  const auto once = ParseReport(ToJson(report), "r.json");
  ASSERT_TRUE(once.ok()) << base::Message(once.status());
  EXPECT_EQ(ToJson(*once), ToJson(report));
  EXPECT_EQ(once->before, report.before);
  EXPECT_EQ(once->after, report.after);
  report.check = ReportCheck{.max_relative_error = 1e-7,
                             .outputs_compared = 1,
                             .outputs = 2,
                             .nodes_evaluated = 8,
                             .skipped = {"output 'y': integers"}};
  report.notes = {"one"};
  const auto again = ParseReport(ToJson(report), "r.json");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(ToJson(*again), ToJson(report));
  EXPECT_EQ(Explain(*again), Explain(report));
}

TEST(ReportTest, NumbersThatAreNotFiniteBecomeNull) {
  Report report;
  report.cost_before_us = INFINITY;
  EXPECT_THAT(ToJson(report), HasSubstr("\"cost_before_us\": null"));
}

TEST(ReportTest, MalformedReportsNameTheField) {
  const std::string good = ToJson(LectureReport());
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    const auto report = ParseReport(bad, "r.json");
    EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument) << to;
    return base::Message(report.status());
  };
  EXPECT_THAT(error("{", "["), HasSubstr("r.json: is not JSON"));
  EXPECT_THAT(error("\"nodes_before\": 7", "\"nodes_before\": \"7\""), HasSubstr("nodes_before"));
  EXPECT_THAT(error("\"nodes_before\": 7", "\"nodes_before\": 1e300"), HasSubstr("nodes_before"));
  EXPECT_THAT(error("\"cost_after_us\"", "\"cost\""), HasSubstr("cost_after_us: is missing"));
  EXPECT_THAT(error("\"direction\": \"forward\"", "\"direction\": \"up\""),
              HasSubstr("steps[0].direction"));
  EXPECT_THAT(error("\"kind\": 1", "\"kind\": 99"), HasSubstr("boxes[0].kind"));
  EXPECT_THAT(error("\"operands\": [\n", "\"operands\": [7,\n"), HasSubstr("operands[0]"));
  for (const char* text : {"", "null", "[]", "3", "{}"}) {
    EXPECT_FALSE(ParseReport(text, "r.json").ok()) << text;
  }
}

TEST(ExplainTest, SaysWhatWasDoneAndWhatWasNot) {
  Report report = LectureReport();
  EXPECT_THAT(Explain(report),
              AllOf(HasSubstr("block.onnx on roofline:h100"), HasSubstr("2.48 times as fast"),
                    HasSubstr("nodes  7 -> 4"), HasSubstr("merge_convs"),
                    HasSubstr("was not compared with the original")));
  report.check = ReportCheck{.max_relative_error = 1e-7, .outputs_compared = 1, .outputs = 1};
  EXPECT_THAT(Explain(report), HasSubstr("1 of 1 outputs compared"));
  Report nothing;
  nothing.device = "roofline:weak";
  nothing.cost_before_us = nothing.cost_after_us = 10;
  EXPECT_THAT(Explain(nothing), HasSubstr("No rule of the packs makes it cheaper"));
}

TEST(ExplainTest, EqualStepsInARowAreToldOnce) {
  Report report;
  for (int k = 0; k < 3; ++k) {
    report.steps.push_back({.rule = "fuse", .from = "a", .to = "b", .cost_us = 9.0 - k});
  }
  report.cost_before_us = 10;
  report.cost_after_us = 7;
  EXPECT_THAT(Explain(report), AllOf(HasSubstr("1-3. fuse  -3.00 us"), HasSubstr("3 times")));
}

}  // namespace
}  // namespace tenon::optimizer
