#include "optimizer/search/built_in.h"

#include <memory>
#include <string_view>
#include <utility>

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

// The same fusions for the forms of Conv that universes leave out: with a bias, and with several
// groups (`where` g >= 2, since with one group and no bias packs have them).
struct ConvForm {
  const char* name;
  const char* inputs;    // Besides the image x and the kernel w.
  const char* operands;  // Likewise.
  const char* where;
};
constexpr ConvForm kConvForms[] = {
    {"bias", " b[f]", ", b", "g >= 1"},
    {"groups", "", "", "g >= 2"},
};
constexpr const char* kConvAttributes = "strides=[s,t], pads=[p,q,u,v], dilations=[d,e], group=g";

std::string ConvRule(const ConvForm& form, const char* name, const char* extra_inputs,
                     const std::string& source, const std::string& target) {
  return fmt::format(
      "rule {}_{}\n"
      "attr s, t, p, q, u, v, d, e, g\n"
      "given x[n,c,h,w] k[f,m,i,j]{}{}\n"
      "source {}\ntarget {}\nwhere {}\nboth\nexpect proved\n\n",
      name, form.name, form.inputs, extra_inputs, source, target, form.where);
}

std::string ConvRules(const ConvForm& form) {
  const auto conv = [&](const char* residual, const char* more) {
    return fmt::format("Conv(x, k{}{}, {}{})", form.operands, residual, kConvAttributes, more);
  };
  const char* y = " y[n,f,a,o]";
  return ConvRule(form, "conv_relu", "", fmt::format("Relu({})", conv("", "")),
                  conv("", ", activation=relu")) +
         ConvRule(form, "conv_residual", y, fmt::format("Add({}, y)", conv("", "")),
                  conv(", y", ", residual=1")) +
         ConvRule(form, "conv_residual_relu", y,
                  fmt::format("Relu({})", conv(", y", ", residual=1")),
                  conv(", y", ", residual=1, activation=relu"));
}

// Two convolutions of one image, or a small kernel that is enlarged to meet a larger one.
constexpr std::string_view kBiasMerges = R"(
rule merge_convs_bias
attr s, t, p, q, u, v, d, e
given x[n,c,h,w] k[f,c,i,j] l[g,c,i,j] a[f] b[g]
source Conv(x, k, a, strides=[s,t], pads=[p,q,u,v], dilations=[d,e]),
       Conv(x, l, b, strides=[s,t], pads=[p,q,u,v], dilations=[d,e])
target Slice(Conv(x, Concat(k, l, axis=0), Concat(a, b, axis=0), strides=[s,t], pads=[p,q,u,v],
                  dilations=[d,e]), axis=1, start=0, end=f),
       Slice(Conv(x, Concat(k, l, axis=0), Concat(a, b, axis=0), strides=[s,t], pads=[p,q,u,v],
                  dilations=[d,e]), axis=1, start=f, end=f+g)
expect proved

rule enlarge_1x1_bias
attr s, t, p, q, u, v
given x[n,c,h,w] k[f,c,1,1] b[f]
source Conv(x, k, b, strides=[s,t], pads=[p,q,u,v])
target Conv(x, Enlarge(k, kernel_shape=[3,3]), b, strides=[s,t], pads=[p+1,q+1,u+1,v+1])
expect proved

)";

// The average is linear. Backwards it would only be dearer: two pools for one.
std::string PoolRule(int count_include_pad) {
  const auto pool = [&](const char* of) {
    return fmt::format(
        "AveragePool({}, kernel_shape=[i,j], strides=[s,t], pads=[p,q,u,v], count_include_pad={})",
        of, count_include_pad);
  };
  return fmt::format(
      "rule sum_of_average_pools_{}\n"
      "attr i, j, s, t, p, q, u, v\n"
      "given x[n,c,h,w] y[n,c,h,w]\n"
      "source Add({}, {})\ntarget {}\nexpect proved\n\n",
      count_include_pad, pool("x"), pool("y"), pool("Add(x, y)"));
}

// A normalization behind a convolution goes into the kernel and the bias. What it does to a channel
// is x -> scale * x + shift; shift is what becomes of 0, and scale + shift what becomes of 1.
std::string NormalizationRule(double epsilon, int number, bool bias) {
  const std::string bn = fmt::format("y, b, m, r, epsilon={}", epsilon);
  const std::string shift = fmt::format("BatchNormalization(Fill(shape=[1,f], value=0), {})", bn);
  const std::string scale =
      fmt::format("Sub(BatchNormalization(Fill(shape=[1,f], value=1), {}), {})", bn, shift);
  const std::string new_bias =
      bias
          ? fmt::format("Add(Mul(o, Reshape({}, shape=[f])), Reshape({}, shape=[f]))", scale, shift)
          : fmt::format("Reshape({}, shape=[f])", shift);
  return fmt::format(
      "rule conv_normalization{}_{}\n"
      "attr s, t, p, q, u, v, d, e, g\n"
      "given x[n,c,h,w]\n"
      "weight k[f,a,i,j], y[f], b[f], m[f], r[f]{}\n"
      "source BatchNormalization(Conv(x, k{}, {}), {})\n"
      "target Conv(x, Mul(k, Reshape({}, shape=[f,1,1,1])), {}, {})\n"
      "where g >= 1\nexpect proved\n\n",
      bias ? "_bias" : "", number, bias ? ", o[f]" : "", bias ? ", o" : "", kConvAttributes, bn,
      scale, new_bias, kConvAttributes);
}

// An attribute that is no size is part of a rule, so there is a rule for each value that is common:
// what frameworks have as defaults, and these as the float32 that a model file holds.
constexpr double kEpsilons[] = {1e-5,          double(1e-5f),    1e-3, double(1e-3f),
                                1e-4,          double(1e-4f),    1e-6, double(1e-6f),
                                double(2e-5f), double(1.001e-5f)};

std::string ExactText() {
  std::string text;
  for (int rank = 2; rank <= kRankMax; ++rank) {
    for (int axis = 0; axis < rank; ++axis) {
      for (const char* op : {"Relu", "Sigmoid", "Tanh"}) text += UnaryRule(op, rank, axis);
    }
  }
  return text;
}

std::string FiniteText() {
  std::string text;
  for (int rank = 2; rank <= 3; ++rank) text += BiasRule(rank);
  for (const ConvForm& form : kConvForms) text += ConvRules(form);
  text += kBiasMerges;
  for (const int count_include_pad : {0, 1}) text += PoolRule(count_include_pad);
  int number = 0;
  for (const double epsilon : kEpsilons) {
    ++number;
    text += NormalizationRule(epsilon, number, false) + NormalizationRule(epsilon, number, true);
  }
  return text;
}

}  // namespace

std::string BuiltInRuleText() { return ExactText() + FiniteText(); }

void AddBuiltIn(const std::string& text, rules::FloatClass float_class,
                std::vector<SearchRule>& out) {
  const auto parsed = rules::ParseRules(text, kBuiltInPack);
  CHECK(parsed.ok());
  for (const rules::ParsedRule& p : *parsed) {
    CHECK(p.rule.ok());
    rules::Rule rule = *p.rule;
    rule.float_class = float_class;
    out.push_back({std::make_shared<const rules::Rule>(std::move(rule)), kBuiltInPack});
  }
}

std::vector<SearchRule> BuiltInRules() {
  std::vector<SearchRule> out;
  AddBuiltIn(ExactText(), rules::FloatClass::kExact, out);
  AddBuiltIn(FiniteText(), rules::FloatClass::kFinite, out);
  return out;
}

}  // namespace tenon::optimizer
