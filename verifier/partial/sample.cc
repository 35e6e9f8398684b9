#include "verifier/partial/sample.h"

#include <fmt/core.h>

#include "core/eval/eval.h"

namespace tenon::partial {

using graph::NodeId;

namespace {

constexpr double kWorkMax = 5e7;
constexpr std::int64_t kValueMax = 1 << 20;

// SplitMix64: any seed is a good one.
std::uint64_t Next(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ull;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double WorkOf(const graph::Graph& g) {
  double work = 0;
  for (std::size_t k = 0; k < g.size(); ++k) {
    const graph::Node& n = g.node(static_cast<NodeId>(k));
    if (n.is_input() || ops::IsOpaque(*n.op)) continue;
    std::vector<graph::Extents> operands;
    for (const NodeId id : n.operands) operands.push_back(graph::Concrete(g.shape(id)));
    const eval::Work w = eval::WorkOf(*n.op, operands, graph::Concrete(n.shape()));
    work += w.flops + w.elements_out;
  }
  return work;
}

}  // namespace

graph::Extents PositionOf(std::int64_t number, const graph::Extents& extents) {
  graph::Extents index = extents;
  for (int axis = extents.size(); axis-- > 0;) {
    index[axis] = number % extents[axis];
    number /= extents[axis];
  }
  return index;
}

StatusOr<Sample> SampleAt(const rules::Rule& pair, const std::vector<std::int64_t>& sizes,
                          std::uint64_t seed) {
  std::vector<std::int64_t> values = sizes;
  values.resize(pair.graph.symbols().size(), 0);
  const std::vector<NodeId> roots{pair.source[0], pair.target[0]};
  ASSIGN_OR_RETURN(const graph::Graph g, graph::Instantiate(pair.graph, roots, values));
  if (const double work = WorkOf(g); work > kWorkMax) {
    return base::ResourceExhausted(
        fmt::format("{:.3g} operations, more than {:.3g}", work, kWorkMax));
  }
  std::uint64_t state = seed;
  std::vector<eval::Tensor<eval::Exact>> inputs;
  for (std::size_t k = 0; k < g.inputs().size(); ++k) {
    eval::Tensor<eval::Exact> t;
    t.extents = graph::Concrete(g.shape(g.input_node(static_cast<std::int32_t>(k))));
    for (std::int64_t n = graph::ElementCount(t.extents); n > 0; --n) {
      const auto v = static_cast<std::int64_t>(Next(state) % (2 * kValueMax)) - kValueMax;
      t.data.push_back(eval::FromInteger(v));
    }
    inputs.push_back(std::move(t));
  }
  ASSIGN_OR_RETURN(const auto outputs, eval::Evaluate(g, g.outputs(), inputs, Next(state)));
  Sample sample;
  sample.extents = outputs[0].extents;
  for (std::size_t k = 0; k < outputs[0].data.size(); ++k) {
    sample.differs.push_back(!(outputs[0].data[k] == outputs[1].data[k]));
  }
  return sample;
}

}  // namespace tenon::partial
