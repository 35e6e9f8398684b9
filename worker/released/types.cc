#include "worker/released/types.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/fingerprint.h"

namespace tenon::worker::released {
namespace {

constexpr std::uint8_t kBatch = 2;

bool HasDefaultWindow(const ops::Conv& conv) {
  const ops::Conv plain;
  return conv.strides == plain.strides && conv.dilations == plain.dilations &&
         conv.group == plain.group && conv.residual == 0;
}

// "Same" padding of a kernel with odd extents.
template <class Pads>
bool IsSame(const Pads& pads, std::int64_t height, std::int64_t width) {
  return pads.size() == 4 && pads[0].is_constant(height / 2) && pads[1].is_constant(width / 2) &&
         pads[2].is_constant(height / 2) && pads[3].is_constant(width / 2);
}

template <class Sizes>
bool Is3x3(const Sizes& kernel) {
  return kernel.size() == 2 && kernel[0].is_constant(3) && kernel[1].is_constant(3);
}

struct Reader {
  const graph::Universe& universe;
  std::vector<Instance>& out;

  Instance& Push(Kind kind, std::string name) {
    Instance& i = out.emplace_back();
    i.kind = kind;
    i.name = std::move(name);
    return i;
  }
  bool PushConstant(std::string name, const base::Short<ops::Size>& shape) {
    Type type;
    if (shape.size() != 0 && shape.size() != 2 && shape.size() != 4) return false;
    type.rank = static_cast<std::uint8_t>(shape.size());
    for (int a = 0; a < shape.size(); ++a) {
      if (shape[a].constant() > 255) return false;
      type.extents[std::size_t(a)] = static_cast<std::uint8_t>(shape[a].constant());
    }
    Instance& i = Push(Kind::kConstant, std::move(name));
    i.type = type;
    i.values.assign(type.elements(), 0);
    return true;
  }

  bool operator()(const ops::Conv& conv, const graph::Universe::Operator& o) {
    for (const graph::Universe::Limit& limit : o.limits) {
      if (limit.operand != 1 || limit.extents.size() != 4) continue;
      const std::int64_t h = limit.extents[2], w = limit.extents[3];
      const bool relu = conv.activation == ops::Activation::kRelu;
      if ((h != 1 && h != 3) || (w != 1 && w != 3) || o.arity != 2 || !HasDefaultWindow(conv) ||
          !IsSame(conv.pads, h, w) || (!relu && conv.activation != ops::Activation::kNone)) {
        return false;
      }
      Instance& i = Push(Kind::kConv, fmt::format("Conv{}x{}{}", h, w, relu ? "Relu" : ""));
      i.height = static_cast<std::uint8_t>(h);
      i.width = static_cast<std::uint8_t>(w);
      i.relu = relu;
      return true;
    }
    return false;
  }
  bool operator()(const ops::MatMul&, const graph::Universe::Operator&) {
    Push(Kind::kMatMul, "MatMul");
    return true;
  }
  bool operator()(const ops::Add&, const graph::Universe::Operator&) {
    Push(Kind::kAdd, "Add");
    return true;
  }
  bool operator()(const ops::Mul&, const graph::Universe::Operator& o) {
    Push(Kind::kMul, "Mul");
    if (!o.same_shape) Push(Kind::kScalarMul, "ScalarMul");
    return true;
  }
  bool operator()(const ops::AveragePool& pool, const graph::Universe::Operator&) {
    Push(Kind::kAveragePool, "AveragePool");
    return Is3x3(pool.kernel_shape) && IsSame(pool.pads, 3, 3) && pool.count_include_pad == 1 &&
           pool.strides == ops::AveragePool().strides;
  }
  bool operator()(const ops::MaxPool& pool, const graph::Universe::Operator&) {
    Push(Kind::kMaxPool, "MaxPool");
    return Is3x3(pool.kernel_shape) && IsSame(pool.pads, 3, 3) &&
           pool.strides == ops::MaxPool().strides;
  }
  bool operator()(const ops::Fill& fill, const graph::Universe::Operator&) {
    if (!PushConstant("Fill", fill.shape)) return false;
    const auto value = static_cast<std::int32_t>(std::clamp(fill.value, -1e9, 1e9));
    std::fill(out.back().values.begin(), out.back().values.end(), std::uint32_t(value));
    return fill.value == value;
  }
  bool operator()(const ops::Eye& eye, const graph::Universe::Operator&) {
    if (!PushConstant("Eye", {eye.size, eye.size})) return false;
    const std::size_t n = out.back().type.extents[0];
    for (std::size_t k = 0; k < n; ++k) out.back().values[k * n + k] = 1;
    return true;
  }
  bool operator()(const ops::ConvIdentity& identity, const graph::Universe::Operator&) {
    if (identity.kernel_shape.size() != 2) return false;
    if (!PushConstant("ConvIdentity", {identity.channels, identity.channels,
                                       identity.kernel_shape[0], identity.kernel_shape[1]})) {
      return false;
    }
    const auto& e = out.back().type.extents;
    for (std::size_t k = 0; k < e[0]; ++k) {
      out.back().values[((k * e[1] + k) * e[2] + e[2] / 2) * e[3] + e[3] / 2] = 1;
    }
    return true;
  }
  bool operator()(const ops::Enlarge& enlarge, const graph::Universe::Operator&) {
    Instance& i = Push(Kind::kEnlarge, "Enlarge");
    i.height = i.width = 3;
    return Is3x3(enlarge.kernel_shape);
  }
  bool operator()(const ops::Relu&, const graph::Universe::Operator&) {
    Push(Kind::kRelu, "Relu");
    return true;
  }
  bool operator()(const ops::Concat& concat, const graph::Universe::Operator& o) {
    Push(Kind::kConcat, fmt::format("Concat{}", concat.axis)).axis =
        static_cast<std::uint8_t>(concat.axis);
    return o.arity == 2 && (concat.axis == 0 || concat.axis == 1);
  }
  bool operator()(const ops::Split& split, const graph::Universe::Operator&) {
    Push(Kind::kSplit, fmt::format("Split{}", split.axis)).axis =
        static_cast<std::uint8_t>(split.axis);
    return split.parts == 2 && split.index == 0 && (split.axis == 0 || split.axis == 1);
  }
  bool operator()(const ops::Transpose& transpose, const graph::Universe::Operator&) {
    Push(Kind::kTranspose, "Transpose");
    Push(Kind::kShuffle, "TransposeShuffle");
    return transpose.perm.size() == 2 && transpose.perm[0] == 1 && transpose.perm[1] == 0;
  }
  template <class Other>
  bool operator()(const Other&, const graph::Universe::Operator&) {
    return false;
  }
};

}  // namespace

StatusOr<std::vector<Instance>> InstancesOf(const graph::Universe& universe) {
  std::vector<Instance> out;
  Reader reader{universe, out};
  for (const graph::Universe::Operator& o : universe.operators) {
    if (!std::visit([&](const auto& op) { return reader(op, o); }, o.op)) {
      return base::InvalidArgument(fmt::format(
          "universe {}: operator '{}': TASO's released generator has none with these attributes "
          "and operands; remove it, or leave out `semantics`",
          universe.name, ops::NameOf(o.op)));
    }
  }
  // So that a Conv with Relu follows the one without.
  std::stable_sort(out.begin(), out.end(), [](const Instance& a, const Instance& b) {
    const auto key = [](const Instance& i) {
      return std::tuple(i.kind, i.kind == Kind::kConv ? i.height * 16 + i.width : 0,
                        i.kind == Kind::kConv && i.relu);
    };
    return key(a) < key(b);
  });
  return out;
}

Types::Types(std::vector<Instance> instances, std::int64_t elements_max)
    : instances_(std::move(instances)), elements_max_(std::uint32_t(elements_max)) {
  for (std::size_t k = 0; k < instances_.size(); ++k) {
    if (instances_[k].kind != Kind::kConstant) continue;
    if (instances_[k].type.elements() > elements_max_) continue;
    constants_.push_back({static_cast<std::uint16_t>(k), {Intern(instances_[k].type), kNoType}});
  }
}

TypeId Types::Intern(const Type& type) {
  std::uint64_t h = type.rank * 2u + (type.by_columns ? 1 : 0);
  for (std::size_t a = 0; a < type.rank; ++a) {
    h = base::Mix64(h + type.extents[a] * 256u + type.splits[a].count);
    for (std::size_t k = 0; k < type.splits[a].count; ++k)
      h = base::Mix64(h + type.splits[a].at[k]);
  }
  h = base::Mix64(h);
  if (2 * (types_.size() + 1) > by_hash_.size()) {
    by_hash_.assign(std::max<std::size_t>(256, 2 * by_hash_.size()), kNoType);
    for (TypeId id = 0; id < types_.size(); ++id) {
      std::size_t at = hashes_[id] & (by_hash_.size() - 1);
      while (by_hash_[at] != kNoType) at = (at + 1) & (by_hash_.size() - 1);
      by_hash_[at] = id;
    }
  }
  std::size_t at = h & (by_hash_.size() - 1);
  for (; by_hash_[at] != kNoType; at = (at + 1) & (by_hash_.size() - 1)) {
    if (types_[by_hash_[at]] == type) return by_hash_[at];
  }
  by_hash_[at] = static_cast<TypeId>(types_.size());
  types_.push_back(type);
  hashes_.push_back(h);
  return by_hash_[at];
}

bool Types::Result(Type type, TypeId& out) {
  for (std::size_t a = 0; a < type.rank; ++a) {
    SplitTree& s = type.splits[a];
    std::fill(s.at.begin() + s.count, s.at.end(), std::uint8_t{0});
  }
  if (type.elements() > elements_max_) return false;
  out = Intern(type);
  return true;
}

bool Types::Infer1(const Instance& instance, TypeId id, Step& out) {
  const Type a = at(id);
  Type t = a;
  switch (instance.kind) {
    case Kind::kRelu:
      return Result(t, out.results[0]);
    case Kind::kAveragePool:
    case Kind::kMaxPool:
      t.splits[1] = {};
      return a.rank == 4 && Result(t, out.results[0]);
    case Kind::kTranspose:
    case Kind::kShuffle:
      if (a.rank != 2) return false;
      std::swap(t.extents[0], t.extents[1]);
      std::swap(t.splits[0], t.splits[1]);
      t.by_columns = instance.kind == Kind::kTranspose && !a.by_columns;
      return Result(t, out.results[0]);
    case Kind::kSplit: {
      const std::size_t axis = instance.axis;
      if (a.rank <= axis || a.splits[axis].count == 0) return false;
      const SplitTree& tree = a.splits[axis];
      const std::size_t last = tree.count - std::size_t{1};
      const std::uint8_t middle = tree.at[last];
      Type right = a;
      t.by_columns = right.by_columns = false;
      t.extents[axis] = middle;
      right.extents[axis] = static_cast<std::uint8_t>(a.extents[axis] - middle);
      t.splits[axis] = right.splits[axis] = {};
      SplitTree &l = t.splits[axis], &r = right.splits[axis];
      std::size_t k = 0;
      for (; k <= last && tree.at[k] < middle; ++k) l.at[l.count++] = tree.at[k];
      for (; k < last; ++k) r.at[r.count++] = static_cast<std::uint8_t>(tree.at[k] - middle);
      return Result(t, out.results[0]) && Result(right, out.results[1]);
    }
    case Kind::kMatMul:
    case Kind::kAdd:
    case Kind::kMul:
    case Kind::kScalarMul:
    case Kind::kConv:
    case Kind::kConstant:
    case Kind::kEnlarge:
    case Kind::kConcat:
      return false;
  }
  return false;
}

bool Types::Infer2(const Instance& instance, TypeId id_a, TypeId id_b, Step& out) {
  const Type a = at(id_a), b = at(id_b);
  Type t = a;
  // Split trees that differ are forgotten.
  const auto merge_splits = [&](std::size_t axis) {
    if (!(a.splits[axis] == b.splits[axis])) t.splits[axis] = {};
  };
  switch (instance.kind) {
    case Kind::kMatMul:
      if (a.rank != 2 || b.rank != 2 || a.extents[1] != b.extents[0] || b.extents[0] == kBatch) {
        return false;
      }
      t.extents[1] = b.extents[1];
      t.splits[1] = b.splits[1];
      t.by_columns = false;
      return Result(t, out.results[0]);
    case Kind::kAdd:
    case Kind::kMul:
      if (a.rank != b.rank || a.by_columns != b.by_columns || a.extents != b.extents) return false;
      for (std::size_t axis = 0; axis < a.rank; ++axis) merge_splits(axis);
      return Result(t, out.results[0]);
    case Kind::kScalarMul:
      return b.rank == 0 && Result(t, out.results[0]);
    case Kind::kConv: {
      if (a.rank != 4 || b.rank != 4 || b.extents[2] != instance.height ||
          b.extents[3] != instance.width || a.extents[1] % b.extents[1] != 0 ||
          b.extents[0] % (a.extents[1] / b.extents[1]) != 0) {
        return false;
      }
      t.extents[1] = b.extents[0];
      t.splits[1] = b.splits[0];
      return Result(t, out.results[0]);
    }
    case Kind::kConcat: {
      if (a.rank != b.rank || a.rank < 2) return false;
      for (std::size_t axis = 0; axis < a.rank; ++axis) {
        if (axis != instance.axis) {
          if (a.extents[axis] != b.extents[axis]) return false;
          merge_splits(axis);
          continue;
        }
        SplitTree& tree = t.splits[axis];
        const SplitTree& other = b.splits[axis];
        const int extent = a.extents[axis] + b.extents[axis];
        if (tree.count + other.count + std::size_t{1} > SplitTree::kMax || extent > 255) {
          return false;
        }
        for (std::size_t k = 0; k < other.count; ++k) {
          tree.at[tree.count++] = static_cast<std::uint8_t>(a.extents[axis] + other.at[k]);
        }
        tree.at[tree.count++] = a.extents[axis];
        t.extents[axis] = static_cast<std::uint8_t>(extent);
      }
      t.by_columns = false;
      return Result(t, out.results[0]);
    }
    case Kind::kAveragePool:
    case Kind::kMaxPool:
    case Kind::kConstant:
    case Kind::kEnlarge:
    case Kind::kRelu:
    case Kind::kSplit:
    case Kind::kTranspose:
    case Kind::kShuffle:
      return false;
  }
  return false;
}

template <class Infer>
std::span<const Step> Types::Known(Range& range, Infer&& infer) {
  if (range.first > range.end) {
    Range now{static_cast<std::uint32_t>(steps_.size()), 0};
    for (std::size_t k = 0; k < instances_.size(); ++k) {
      Step step{static_cast<std::uint16_t>(k), {kNoType, kNoType}};
      if (infer(instances_[k], step)) steps_.push_back(step);
    }
    now.end = static_cast<std::uint32_t>(steps_.size());
    range = now;
  }
  return {steps_.data() + range.first, steps_.data() + range.end};
}

std::span<const Step> Types::Unary(TypeId a) {
  if (a >= unary_.size()) unary_.resize(a + std::size_t{64});
  return Known(unary_[a], [&](const Instance& i, Step& step) { return Infer1(i, a, step); });
}

std::span<const Step> Types::Binary(TypeId a, TypeId b) {
  if (a >= binary_.size()) binary_.resize(a + std::size_t{64});
  if (b >= binary_[a].size()) binary_[a].resize(b + std::size_t{64});
  return Known(binary_[a][b], [&](const Instance& i, Step& step) { return Infer2(i, a, b, step); });
}

std::span<const Step> Types::OfInput(TypeId a) {
  if (a >= of_input_.size()) of_input_.resize(a + std::size_t{64});
  return Known(of_input_[a], [&](const Instance& i, Step& step) {
    Type t = at(a);
    if (i.kind != Kind::kEnlarge || t.rank != 4 || t.extents[2] > i.height ||
        t.extents[3] > i.width || (t.extents[2] == i.height && t.extents[3] == i.width)) {
      return false;
    }
    t.extents[2] = i.height;
    t.extents[3] = i.width;
    t.splits[2] = t.splits[3] = {};
    return Result(t, step.results[0]);
  });
}

}  // namespace tenon::worker::released
