// A new node reaches all nodes of a closed set if it uses all of its sinks, so the set has one or
// two. What lies below such sets is cut off: adding a node removes at most one sink.
#include "worker/released/nodes.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/fingerprint.h"

namespace tenon::worker::released {
namespace {

constexpr std::uint64_t kSampled = 64;  // One set in so many.
constexpr int kTimed = 2048;

std::chrono::nanoseconds ThreadCpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace

StatusOr<std::unique_ptr<Nodes>> Nodes::Make(const graph::Universe& universe, std::uint64_t seed) {
  ASSIGN_OR_RETURN(std::vector<Instance> instances, InstancesOf(universe));
  for (const graph::Universe::Input& input : universe.inputs) {
    const graph::Extents& e = input.extents;
    const bool fits = (e.size() == 0 || e.size() == 2 || e.size() == 4) &&
                      std::all_of(e.begin(), e.end(), [](std::int64_t x) { return x <= 255; });
    if (fits) continue;
    return base::InvalidArgument(
        fmt::format("universe {}: input '{}': TASO's released generator has tensors of rank 0, 2 "
                    "and 4 with extents up to 255; give such a shape, or leave out `semantics`",
                    universe.name, input.name));
  }
  return std::unique_ptr<Nodes>(new Nodes(universe, std::move(instances), seed));
}

Nodes::Nodes(const graph::Universe& universe, std::vector<Instance> instances, std::uint64_t seed)
    : types_(std::move(instances), universe.max_elements),
      evaluator_(types_, universe.max_elements, seed),
      inputs_(static_cast<Ref>(universe.inputs.size())) {
  std::size_t elements = 0;
  for (const graph::Universe::Input& input : universe.inputs) {
    input_names_.push_back(input.name);
    is_weight_.push_back(input.kind == graph::InputKind::kWeight);
    Type type;
    type.rank = static_cast<std::uint8_t>(input.extents.size());
    for (int a = 0; a < input.extents.size(); ++a) {
      type.extents[std::size_t(a)] = static_cast<std::uint8_t>(input.extents[a]);
    }
    const TypeId id = types_.Intern(type);
    const auto values = Evaluator::InputValues(seed, elements, type.elements());
    elements += values.size();
    tensors_.push_back({id, Store(values.data(), values.size())});
    input_fingerprints_.push_back(evaluator_.Fingerprint(id, tensors_.back().data));
  }
  table_.CompleteLevel();
}

const std::uint32_t* Nodes::Store(const std::uint32_t* data, std::size_t elements) {
  if (elements > block_left_) {
    block_left_ = std::max(kBlock, elements);
    blocks_.emplace_back(new std::uint32_t[block_left_]);
  }
  std::uint32_t* to = blocks_.back().get() + (std::max(kBlock, elements) - block_left_);
  std::copy(data, data + elements, to);
  block_left_ -= elements;
  return to;
}

// `a_first`: a exists before b in every order of creation; neither: in some orders, each of them.
template <class F>
void Nodes::ForPair(Ref a, Ref b, bool a_first, bool b_first, F&& f) {
  for (const Step& step : types_.Binary(tensors_[a].type, tensors_[b].type)) {
    switch (types_.instances()[step.instance].kind) {
      case Kind::kAdd:
      case Kind::kMul:
        if (a == b || b_first || (!a_first && b < a)) continue;
        break;
      case Kind::kConcat:
        if (a == b || b_first) continue;
        break;
      case Kind::kMatMul:
      case Kind::kScalarMul:
        if (a == b) continue;
        break;
      default:
        if (a < inputs_ && is_weight_[a]) continue;
    }
    f(step, std::array<Ref, 2>{a, b});
  }
}

template <class F>
void Nodes::ForEachOnInputs(F&& f) {
  for (const Step& step : types_.Constants()) f(step, std::array<Ref, 0>{});
  for (Ref a = 0; a < inputs_; ++a) {
    for (const Step& step : types_.Unary(tensors_[a].type)) f(step, std::array<Ref, 1>{a});
    for (const Step& step : types_.OfInput(tensors_[a].type)) f(step, std::array<Ref, 1>{a});
    for (Ref b = 0; b < inputs_; ++b) ForPair(a, b, a < b, b < a, f);
  }
}

template <class F>
void Nodes::ForEachOn(const ClosedSet& set, F&& f) {
  if (set.size == 0) return ForEachOnInputs(f);
  std::array<NodeNumber, 2> sinks{};
  std::size_t count = 0;
  for (int p = 0; p < set.size && count < 2; ++p) {
    if ((set.users >> p & 1) == 0) sinks[count++] = set.node[std::size_t(p)];
  }
  const auto each_result = [&](NodeNumber n, auto&& g) {
    for (int slot = 0; slot < table_.results(n); ++slot) g(inputs_ + 2 * n + Ref(slot));
  };
  if (set.sinks == 2) {
    each_result(sinks[0], [&](Ref a) {
      each_result(sinks[1], [&](Ref b) {
        ForPair(a, b, false, false, f);
        ForPair(b, a, false, false, f);
      });
    });
    return;
  }
  CHECK(set.sinks == 1);
  each_result(sinks[0], [&](Ref a) {
    for (const Step& step : types_.Unary(tensors_[a].type)) f(step, std::array<Ref, 1>{a});
    const auto before = [&](Ref b) {
      ForPair(b, a, true, false, f);
      ForPair(a, b, false, true, f);
    };
    for (Ref b = 0; b < inputs_; ++b) before(b);
    each_result(sinks[0], [&](Ref b) { ForPair(a, b, a <= b, b < a, f); });
    for (int p = 0; p < set.size; ++p) {
      const NodeNumber n = set.node[std::size_t(p)];
      if (n != sinks[0]) each_result(n, before);
    }
  });
}

template <class F>
void Nodes::ForEachBelow(F&& f) {
  table_.Walk(depth_, [&](const WalkFrame& frame) {
    const ClosedSet& set = frame.set;
    if (set.sinks > 2 + depth_ - set.size) return false;
    if (set.size < depth_) return true;
    f(set);
    return false;
  });
}

bool Nodes::Make1(const ClosedSet& set, const Step& step, std::span<const Ref> operands) {
  const Instance& instance = types_.instances()[step.instance];
  std::array<Ref, 2> own{};
  std::array<Tensor, 2> values;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    own[k] = operands[k];
    values[k] = tensors_[operands[k]];
  }
  // Types::Binary lists the Conv with Relu after the one without.
  if (instance.kind == Kind::kConv && instance.relu && made_is_conv_ && made_.operands == own &&
      made_.step.instance + 1 == step.instance) {
    evaluator_.ApplyRelu(step.results[0]);
  } else {
    evaluator_.Run(step, {values.data(), operands.size()});
  }
  made_is_conv_ = instance.kind == Kind::kConv && !instance.relu;
  made_.step = step;
  made_.operands = own;
  made_.operand_count = static_cast<int>(operands.size());
  made_.fingerprints = {};
  for (std::size_t slot = 0; slot < std::size_t(made_.results()); ++slot) {
    const std::uint64_t fp = evaluator_.Fingerprint(step.results[slot], evaluator_.result(slot));
    if (std::find(input_fingerprints_.begin(), input_fingerprints_.end(), fp) !=
            input_fingerprints_.end() ||
        set.HasFingerprint(fp)) {
      return false;
    }
    made_.fingerprints[slot] = fp;
  }
  return made_.fingerprints[0] != made_.fingerprints[1];
}

void Nodes::Keep() {
  std::array<ResultNumber, 2> used;
  std::size_t count = 0;
  for (int k = 0; k < made_.operand_count; ++k) {
    const Ref r = made_.operands[std::size_t(k)];
    if (r >= inputs_) used[count++] = r - inputs_;
  }
  const Kind kind = types_.instances()[made_.step.instance].kind;
  std::array<Tensor, 2> results;
  for (std::size_t slot = 0; slot < std::size_t(made_.results()); ++slot) {
    const ResultNumber equal = table_.Find(made_.fingerprints[slot]);
    const TypeId type = made_.step.results[slot];
    results[slot] = {type, equal == NodeTable::kNone
                               ? Store(evaluator_.result(slot), types_.at(type).elements())
                               : tensors_[inputs_ + equal].data};
  }
  table_.Add({.fingerprints = {made_.fingerprints.data(), std::size_t(made_.results())},
              .operands = {used.data(), count},
              .closure_size = depth_ + 1,
              .ordered = kind == Kind::kConcat});
  tensors_.push_back(results[0]);
  tensors_.push_back(results[1]);
  steps_.push_back(made_.step);
  operands_.push_back({made_.operands, made_.operand_count});
}

Status Nodes::BuildLevel() {
  ForEachBelow([&](const ClosedSet& set) {
    ForEachOn(set, [&](const Step& step, auto operands) {
      if (Make1(set, step, operands)) Keep();
    });
  });
  table_.CompleteLevel();
  ++depth_;
  return OkStatus();
}

ClosedSet Nodes::WithMade(const ClosedSet& set) const {
  ClosedSet with = set;
  std::array<int, 2> positions{-1, -1};
  Before before = 0;
  for (std::size_t k = 0; k < std::size_t(made_.operand_count); ++k) {
    if (made_.operands[k] < inputs_) continue;
    const ResultNumber r = made_.operands[k] - inputs_;
    positions[k] = set.PositionOf(r / 2);
    with.Use(positions[k], int(r % 2));
    before |= Before{1} << positions[k];
  }
  with.before |= before << (8 * set.size);
  if (types_.instances()[made_.step.instance].kind == Kind::kConcat && positions[0] >= 0 &&
      positions[1] >= 0 && positions[0] != positions[1]) {
    with.before |= Before{1} << (8 * positions[1] + positions[0]);
  }
  return with;
}

LastGraph Nodes::GraphOf(const ClosedSet& set) {
  const ClosedSet with = WithMade(set);
  return {.fingerprint = with.sum + made_.fingerprints[0] + made_.fingerprints[1],
          .outputs = with.outputs + made_.results(),
          .orders = orders_.Count(set.size + 1, with.before)};
}

Status Nodes::WalkLast(const Wanted& wanted, const Visit& visit) {
  Status status = OkStatus();
  std::uint64_t unit = 0;
  ForEachBelow([&](const ClosedSet& set) {
    const std::uint64_t own = unit++;
    if (!status.ok() || !wanted(own)) return;
    std::uint32_t number = 0;
    visited_ = &set;
    ForEachOn(set, [&](const Step& step, auto operands) {
      if (!status.ok() || !Make1(set, step, operands)) return;
      LastGraph graph = GraphOf(set);
      graph.unit = own;
      graph.number = number++;
      status = visit(graph);
    });
  });
  return status;
}

StatusOr<LevelSize> Nodes::EstimateLevel() {
  LevelSize out;
  double elements = 0;
  int timed = 0;
  std::chrono::nanoseconds spent{0};
  const std::uint64_t rate = depth_ < 2 ? 1 : kSampled;
  std::uint64_t unit = 0, seen = 0;
  ForEachBelow([&](const ClosedSet& set) {
    if (base::Mix64(unit++) % rate != 0) return;
    ForEachOn(set, [&](const Step& step, auto operands) {
      out.graphs += double(rate);
      for (const TypeId type : step.results) {
        if (type != kNoType) elements += double(rate) * types_.at(type).elements();
      }
      // The first ones are not typical, so every 7th is timed.
      if (timed == kTimed || ++seen % 7 != 0) return;
      const auto begin = ThreadCpu();
      static_cast<void>(Make1(set, step, operands));
      spent += ThreadCpu() - begin;
      ++timed;
    });
  });
  constexpr double kNodeBytes = 200;
  out.bytes = elements * sizeof(std::uint32_t) + out.graphs * kNodeBytes;
  if (timed > 0) {
    out.cpu_seconds = std::chrono::duration<double>(spent).count() / timed * out.graphs;
  }
  return out;
}

std::string Nodes::TextOfRef(Ref r) const {
  return r < inputs_ ? input_names_[r] : TextOf(r - inputs_);
}

std::string Nodes::TextOf(const Step& step, std::span<const Ref> operands) const {
  const Instance& instance = types_.instances()[step.instance];
  std::vector<std::string> texts;
  for (const Ref r : operands) texts.push_back(TextOfRef(r));
  // Which operand came first is no property of a set.
  if (instance.kind == Kind::kAdd || instance.kind == Kind::kMul) {
    std::sort(texts.begin(), texts.end());
  }
  return fmt::format("{}({})", instance.name, fmt::join(texts, ", "));
}

std::string Nodes::TextOf(ResultNumber result) const {
  const NodeNumber n = result / 2;
  const Operands& own = operands_[n];
  const std::string text = TextOf(steps_[n], {own.refs.data(), std::size_t(own.count)});
  return table_.results(n) == 1 ? text : fmt::format("{}[{}]", text, result % 2);
}

std::vector<std::string> Nodes::TextsOfLast() const {
  std::vector<std::string> out;
  const ClosedSet with = WithMade(*visited_);
  with.ForEachOutput([&](ResultNumber r) { out.push_back(TextOf(r)); });
  const std::string text =
      TextOf(made_.step, {made_.operands.data(), std::size_t(made_.operand_count)});
  if (made_.results() == 1) {
    out.push_back(text);
  } else {
    for (int slot = 0; slot < 2; ++slot) out.push_back(fmt::format("{}[{}]", text, slot));
  }
  return out;
}

}  // namespace tenon::worker::released
