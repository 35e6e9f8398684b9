#include "tests/support/float_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/eval/eval.h"
#include "core/rules/instance.h"
#include "core/rules/text.h"

namespace tenon::testing {
namespace {

using eval::Tensor;
using Limits = std::numeric_limits<double>;

constexpr std::array kFiniteSpecials{
    0.0, -0.0, Limits::denorm_min(), -Limits::denorm_min(), Limits::min() / 2, 1.0, -1.0};
constexpr std::array kSpecials{Limits::infinity(),   -Limits::infinity(), Limits::quiet_NaN(),
                               -Limits::quiet_NaN(), Limits::max(),       -Limits::max(),
                               Limits::min()};

double Value(rules::Dice& dice, bool finite) {
  const std::int64_t kind = dice.Between(0, 9);
  if (kind <= 1) return kFiniteSpecials[dice.Next() % kFiniteSpecials.size()];
  if (kind <= 3 && !finite) return kSpecials[dice.Next() % kSpecials.size()];
  return static_cast<double>(dice.Between(-1'000'000, 1'000'000)) / 500'000.0;
}

bool SameBits(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// The bound that is stated; nothing where something is not finite.
std::optional<double> BoundOf(std::span<const Tensor<double>> tensors) {
  double magnitude = 1;
  std::size_t elements = 1;
  for (const Tensor<double>& t : tensors) {
    elements = std::max(elements, t.data.size());
    for (const double v : t.data) {
      if (!std::isfinite(v)) return std::nullopt;
      magnitude = std::max(magnitude, std::abs(v));
    }
  }
  return 8 * static_cast<double>(elements) * std::ldexp(1.0, -53) * magnitude * magnitude;
}

}  // namespace

FloatCheck CheckFloats(const rules::Rule& rule, rules::FloatClass float_class, int instances) {
  FloatCheck out;
  if (float_class == rules::FloatClass::kDomain) return out;
  const bool exact = float_class == rules::FloatClass::kExact;
  rules::Dice dice(7);
  std::vector<graph::NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  for (int k = 0; k < instances; ++k) {
    const auto sizes = rules::RandomValues(rule, dice);
    if (!sizes) continue;
    const auto g = graph::Instantiate(rule.graph, roots, *sizes);
    CHECK(g.ok());
    std::vector<Tensor<double>> inputs;
    for (std::int32_t n = 0; n < std::int32_t(g->inputs().size()); ++n) {
      Tensor<double>& t = inputs.emplace_back();
      t.extents = graph::Concrete(g->shape(g->input_node(n)));
      t.data.resize(std::size_t(graph::ElementCount(t.extents)));
      for (double& v : t.data) v = Value(dice, !exact);
    }
    // The outputs, then everything on the way.
    std::vector<graph::NodeId> wanted = g->outputs();
    const std::vector<graph::NodeId> reached = g->Reachable(g->outputs());
    wanted.insert(wanted.end(), reached.begin(), reached.end());
    const auto values = eval::Evaluate(*g, wanted, inputs);
    CHECK(values.ok());
    const auto bound = exact ? std::optional(0.0) : BoundOf(*values);
    if (!bound) continue;
    ++out.instances;
    for (std::size_t o = 0; o < rule.source.size(); ++o) {
      const auto& a = (*values)[o].data;
      const auto& b = (*values)[rule.source.size() + o].data;
      CHECK(a.size() == b.size());
      for (std::size_t e = 0; e < a.size(); ++e) {
        const bool holds = exact ? SameBits(a[e], b[e]) : std::abs(a[e] - b[e]) <= *bound;
        if (!exact) out.worst_error = std::max(out.worst_error, std::abs(a[e] - b[e]) / *bound);
        if (holds) continue;
        out.broken = fmt::format("element {} of output {} is {} in the source and {} in the target",
                                 e, o, a[e], b[e]);
        return out;
      }
    }
  }
  return out;
}

}  // namespace tenon::testing
