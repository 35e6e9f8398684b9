#include "optimizer/search/built_in.h"

#include <memory>

#include <fmt/core.h>

#include "core/base/check.h"
#include "core/rules/text.h"

namespace tenon::optimizer {
namespace {

constexpr int kRankMax = 4;
constexpr const char* kDims[] = {"k", "l", "m", "n"};

// "[k,l,m]" with the extent of `axis` replaced.
std::string ShapeWith(int rank, int axis, const std::string& extent) {
  std::string out;
  for (int a = 0; a < rank; ++a) {
    out += (a == 0 ? "[" : ",") + (a == axis ? extent : std::string(kDims[a]));
  }
  return out + "]";
}

// f(part of x) = the part of f(x).
std::string UnaryRule(const char* op, int rank, int axis) {
  return fmt::format(
      "rule {0}_of_slice_{1}_{2}\n"
      "given x{3}\n"
      "attr i >= 0, j >= 1\n"
      "source {0}(Slice(x, axis={2}, start=i, end=j))\n"
      "target Slice({0}(x), axis={2}, start=i, end=j)\n"
      "both\nexpect proved\n\n",
      op, rank, axis, ShapeWith(rank, axis, kDims[axis]));
}

// Biases of two neighbouring parts: one sum instead of two.
std::string BiasRule(int rank) {
  const int axis = rank - 1;
  return fmt::format(
      "rule biases_of_slices_{0}\n"
      "given x{1}\n"
      "weight b[p], c[q]\n"
      "attr i >= 0\n"
      "source Add(Slice(x, axis={2}, start=i, end=i+p), b),\n"
      "       Add(Slice(x, axis={2}, start=i+p, end=i+p+q), c)\n"
      "target Slice(Add(Slice(x, axis={2}, start=i, end=i+p+q), Concat(b, c, axis=0)),\n"
      "             axis={2}, start=0, end=p),\n"
      "       Slice(Add(Slice(x, axis={2}, start=i, end=i+p+q), Concat(b, c, axis=0)),\n"
      "             axis={2}, start=p, end=p+q)\n"
      "expect proved\n\n",
      rank, ShapeWith(rank, axis, kDims[axis]), axis);
}

}  // namespace

std::string BuiltInRuleText() {
  std::string text;
  for (int rank = 2; rank <= kRankMax; ++rank) {
    for (int axis = 0; axis < rank; ++axis) {
      for (const char* op : {"Relu", "Sigmoid", "Tanh"}) text += UnaryRule(op, rank, axis);
    }
  }
  for (int rank = 2; rank <= 3; ++rank) text += BiasRule(rank);
  return text;
}

std::vector<SearchRule> BuiltInRules() {
  const auto parsed = rules::ParseRules(BuiltInRuleText(), kBuiltInPack);
  CHECK(parsed.ok());
  std::vector<SearchRule> out;
  for (const rules::ParsedRule& p : *parsed) {
    CHECK(p.rule.ok());
    rules::Rule rule = *p.rule;
    rule.float_class =
        rule.source.size() == 1 ? rules::FloatClass::kExact : rules::FloatClass::kFinite;
    out.push_back({std::make_shared<const rules::Rule>(std::move(rule)), kBuiltInPack});
  }
  return out;
}

}  // namespace tenon::optimizer
