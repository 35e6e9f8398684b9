#include "core/ops/operator.h"

#include <bit>

#include <fmt/core.h>

#include "core/ops/archetype.h"

namespace tenon::ops {
namespace {

// How many members an operator has, found by trying to brace-initialise it.
struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT: converts to everything; never called.
};
template <class Op, class... M>
consteval int MemberCount() {
  if constexpr (requires { Op{M{}..., AnyMember{}}; }) {
    return MemberCount<Op, M..., AnyMember>();
  } else {
    return sizeof...(M);
  }
}
template <class Op>
inline constexpr bool kEveryMemberIsAField = MemberCount<Op>() ==
                                             int(std::tuple_size_v<decltype(Op::Fields())>);

// Checks that hold for the whole list.
template <class V>
struct ListOf;
template <class... Op>
struct ListOf<std::variant<Op...>> {
  static_assert((Definition<Op> && ...), "an operator lacks a facet");
  static_assert((kEveryMemberIsAField<Op> && ...), "a member is not listed in Fields()");
  static consteval bool WireIdsDiffer() {
    const std::uint16_t id[] = {Op::kInfo.wire_id...};
    for (const auto& a : id) {
      for (const auto& b : id) {
        if (&a != &b && a == b) return false;
      }
    }
    return true;
  }
  static_assert(WireIdsDiffer(), "two operators share a wire id");
  static std::vector<Operator> All() { return {Operator(Op{})...}; }
};
using List = ListOf<Operator>;

// Calls f(field, member) for each attribute; `op` may be const or not, and so is the member.
template <class Op, class F>
void ForEachField(Op& op, F f) {
  std::visit(
      [&](auto& o) {
        std::apply([&](const auto&... field) { (f(field, o.*field.member), ...); }, o.Fields());
      },
      op);
}

std::size_t Mix(std::size_t h, std::size_t x) {
  h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}
std::size_t HashOf(std::int64_t v) { return static_cast<std::size_t>(v); }
std::size_t HashOf(double v) { return std::bit_cast<std::uint64_t>(v); }
std::size_t HashOf(Activation v) { return static_cast<std::size_t>(v); }
std::size_t HashOf(const Size& v) { return v.Hash(); }
template <class T>
std::size_t HashOf(const Short<T>& v) {
  std::size_t h = static_cast<std::size_t>(v.size());
  for (const T& x : v) h = Mix(h, HashOf(x));
  return h;
}

// `from` as a T, where the two spellings of an integer are exchanged as needed.
template <class T>
std::optional<T> As(const AttrValue& from) {
  if (const T* same = std::get_if<T>(&from)) return *same;
  if constexpr (std::is_same_v<T, std::int64_t>) {
    const Size* s = std::get_if<Size>(&from);
    if (s != nullptr && s->is_constant()) return s->constant();
  } else if constexpr (std::is_same_v<T, Size>) {
    if (const auto* i = std::get_if<std::int64_t>(&from)) return Size(*i);
  } else if constexpr (std::is_same_v<T, double>) {
    if (const auto* i = std::get_if<std::int64_t>(&from)) return static_cast<double>(*i);
    const Size* s = std::get_if<Size>(&from);
    if (s != nullptr && s->is_constant()) return static_cast<double>(s->constant());
  } else if constexpr (std::is_same_v<T, Short<std::int64_t>>) {
    if (const auto* sizes = std::get_if<Short<Size>>(&from)) {
      T list;
      for (const Size& s : *sizes) {
        if (!s.is_constant()) return std::nullopt;
        list.push_back(s.constant());
      }
      return list;
    }
  } else if constexpr (std::is_same_v<T, Short<Size>>) {
    if (const auto* ints = std::get_if<Short<std::int64_t>>(&from)) {
      T list;
      for (std::int64_t i : *ints) list.push_back(Size(i));
      return list;
    }
  }
  return std::nullopt;
}

template <class T>
constexpr std::string_view KindName() {
  if constexpr (std::is_same_v<T, std::int64_t>) return "an integer";
  if constexpr (std::is_same_v<T, double>) return "a number";
  if constexpr (std::is_same_v<T, Activation>) return "none, relu, sigmoid or tanh";
  if constexpr (std::is_same_v<T, Size>) return "a size";
  if constexpr (std::is_same_v<T, Short<std::int64_t>>) return "a list of integers";
  return "a list of sizes";
}

}  // namespace

const Info& InfoOf(const Operator& op) {
  return std::visit([](const auto& o) -> const Info& { return o.kInfo; }, op);
}

bool IsOpaque(const Operator& op) { return std::holds_alternative<Opaque>(op); }

const std::vector<Operator>& AllOperators() {
  static const std::vector<Operator> all = List::All();
  return all;
}

std::optional<Operator> OperatorByName(std::string_view name) {
  for (const Operator& op : AllOperators()) {
    if (NameOf(op) == name) return op;
  }
  return std::nullopt;
}

std::optional<Operator> OperatorByWireId(std::uint16_t wire_id) {
  for (const Operator& op : AllOperators()) {
    if (InfoOf(op).wire_id == wire_id) return op;
  }
  return std::nullopt;
}

std::vector<Attr> AttrsOf(const Operator& op) {
  std::vector<Attr> out;
  ForEachField(op, [&](const auto& field, const auto& value) {
    out.push_back({field.number, field.name, AttrValue(value)});
  });
  return out;
}

Status SetAttr(Operator& op, std::string_view name, const AttrValue& value) {
  Status status =
      base::InvalidArgument(fmt::format("operator {} has no attribute '{}'", NameOf(op), name));
  ForEachField(op, [&](const auto& field, auto& member) {
    if (field.name != name) return;
    using T = std::decay_t<decltype(member)>;
    if (auto v = As<T>(value)) {
      member = *v;
      status = OkStatus();
    } else {
      status = base::InvalidArgument(
          fmt::format("attribute '{}' of {} must be {}", name, NameOf(op), KindName<T>()));
    }
  });
  return status;
}

Operator MapSizes(const Operator& op, const std::function<Size(const Size&)>& f) {
  Operator out = op;
  ForEachField(out, [&](const auto&, auto& member) {
    using T = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<T, Size>) {
      member = f(member);
    } else if constexpr (std::is_same_v<T, Short<Size>>) {
      for (Size& s : member) s = f(s);
    }
  });
  return out;
}

std::size_t Hash(const Operator& op) {
  std::size_t h = InfoOf(op).wire_id;
  ForEachField(op, [&](const auto&, const auto& value) { h = Mix(h, HashOf(value)); });
  return h;
}

std::string_view NameOf(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "none";
    case Activation::kRelu:
      return "relu";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
  }
  return "none";
}

std::optional<Activation> ActivationByName(std::string_view name) {
  for (Activation a :
       {Activation::kNone, Activation::kRelu, Activation::kSigmoid, Activation::kTanh}) {
    if (NameOf(a) == name) return a;
  }
  return std::nullopt;
}

}  // namespace tenon::ops
