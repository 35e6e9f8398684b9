// Writing. A graph is spelled by walking it from its outputs; where the walk has a choice (operand
// order of commutative nodes, numbers of symbols that appear together) every choice is tried and
// the shortest, then smallest bytes win. The choices of one walk are the digits of an odometer, so
// each combination is tried once and the loop ends. It costs one walk a combination: rules have few
// commutative nodes. Ordering operands by an invariant hash first would be faster and would have to
// be part of the format.
#include "core/rules/canonical.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/bytes.h"
#include "core/base/check.h"
#include "core/rules/wire.h"

namespace tenon::rules {
namespace {

using base::Poly;
using base::PutByte;
using base::PutVarint;
using base::Symbol;
using graph::Graph;
using graph::NodeId;

constexpr int kSpellingsMax = 1 << 16;

class Choices {
 public:
  int Pick(int n) {
    if (n < 2) return 0;
    if (at_ == digits_.size()) digits_.push_back({0, n});
    return digits_[at_++].value;
  }
  // Turns to the next combination; false when all were tried.
  bool Next() {
    digits_.resize(at_);
    at_ = 0;
    while (!digits_.empty() && digits_.back().value + 1 == digits_.back().radix) digits_.pop_back();
    if (digits_.empty()) return false;
    ++digits_.back().value;
    return true;
  }

 private:
  struct Digit {
    int value, radix;
  };
  std::vector<Digit> digits_;
  std::size_t at_ = 0;
};

// One spelling of one graph.
class Spelling {
 public:
  Spelling(const Graph& g, Choices& choices)
      : g_(g), choices_(choices), ref_(g.size(), -1), number_(g.symbols().size(), -1) {}

  // The bytes; empty with ok() false when something cannot be spelled.
  std::string Write(wire::Kind kind, std::span<const NodeId> roots,
                    const std::vector<base::Condition>* where, bool both) {
    for (NodeId id : roots) Visit(id);
    std::string body;
    PutVarint(body, inputs_.size());
    for (NodeId id : inputs_) WriteInput(body, id);
    PutVarint(body, nodes_.size());
    for (NodeId id : nodes_) WriteNode(body, id);
    PutVarint(body, roots.size());
    for (NodeId id : roots) PutVarint(body, Ref(id));
    if (where != nullptr) {
      WriteConditions(body, *where);
      PutByte(body, both ? 1 : 0);
    }
    std::string out;
    PutByte(out, wire::kVersion);
    PutByte(out, static_cast<std::uint8_t>(kind));
    PutVarint(out, kinds_.size());
    return out + kinds_ + body;
  }
  bool ok() const { return ok_; }

 private:
  // Numbers inputs and nodes in the order in which they are left.
  void Visit(NodeId id) {
    if (ref_[std::size_t(id)] >= 0) return;
    const graph::Node& n = g_.node(id);
    if (n.is_input()) {
      ref_[std::size_t(id)] = int(inputs_.size());
      inputs_.push_back(id);
      return;
    }
    std::vector<NodeId> operands = n.operands;
    if (ops::InfoOf(*n.op).commutative && operands[0] != operands[1] && choices_.Pick(2) == 1) {
      std::swap(operands[0], operands[1]);
    }
    for (NodeId& o : operands) {
      Visit(o);
      o = ref_[std::size_t(o)] >= 0 ? NodeOf(o) : o;
    }
    // An equal node may be there already, with commutative operands the other way round.
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      const graph::Node& other = g_.node(nodes_[k]);
      if (operands_[k] == operands && *other.op == *n.op && other.type->dtype == n.type->dtype) {
        ref_[std::size_t(id)] = int(k);
        return;
      }
    }
    ref_[std::size_t(id)] = int(nodes_.size());
    nodes_.push_back(id);
    operands_.push_back(std::move(operands));
  }
  // The node that stands for `id` after equal ones became one.
  NodeId NodeOf(NodeId id) const {
    return g_.node(id).is_input() ? id : nodes_[std::size_t(ref_[std::size_t(id)])];
  }
  std::size_t Ref(NodeId id) const {
    const auto number = std::size_t(ref_[std::size_t(id)]);
    return g_.node(id).is_input() ? number : inputs_.size() + number;
  }

  void WriteInput(std::string& out, NodeId id) {
    const graph::Node& n = g_.node(id);
    PutByte(out, static_cast<std::uint8_t>(g_.input(n.input).kind));
    PutByte(out, static_cast<std::uint8_t>(n.type->dtype));
    PutVarint(out, std::size_t(n.shape().size()));
    for (const Poly& p : n.shape()) WritePoly(out, p);
  }
  void WriteNode(std::string& out, NodeId id) {
    const graph::Node& n = g_.node(id);
    wire::WriteOperator(out, *n.op, [&](const Poly& p) { WritePoly(out, p); });
    const auto& operands = operands_[std::size_t(ref_[std::size_t(id)])];
    PutVarint(out, operands.size());
    for (NodeId o : operands) PutVarint(out, Ref(o));
    if (operands.empty()) PutByte(out, static_cast<std::uint8_t>(n.type->dtype));
    if (ops::IsOpaque(*n.op)) ok_ = false;
  }

  // Sorting needs the bytes, and the bytes need the numbers of all symbols.
  void WriteConditions(std::string& out, const std::vector<base::Condition>& where) {
    std::vector<Symbol> fresh;
    for (const base::Condition& c : where) CollectFresh(c.p, fresh);
    NumberInSomeOrder(fresh);
    std::vector<std::string> all;
    for (const base::Condition& c : where) {
      const base::Condition normal = base::Normal(c);
      std::string one, negated;
      WritePoly(one, normal.p);
      if (normal.kind == base::Condition::Kind::kEq0) {
        WritePoly(negated, -normal.p);
        one = std::min(one, negated);
      }
      all.push_back(std::string(1, static_cast<char>(normal.kind)) + one);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    PutVarint(out, all.size());
    for (const std::string& c : all) out += c;
  }

  void CollectFresh(const Poly& p, std::vector<Symbol>& out) const {
    std::vector<Symbol> all;
    p.CollectSymbols(all, &g_.symbols());
    for (Symbol s : all) {
      const bool plain = g_.symbols().kind(s) != base::SymbolKind::kDiv;
      if (plain && number_[s] < 0 && std::find(out.begin(), out.end(), s) == out.end()) {
        out.push_back(s);
      }
    }
  }
  void NumberInSomeOrder(std::vector<Symbol> fresh) {
    while (!fresh.empty()) {
      const auto it = fresh.begin() + choices_.Pick(int(fresh.size()));
      number_[*it] = int(kinds_.size());
      PutByte(kinds_, g_.symbols().kind(*it) == base::SymbolKind::kDim ? 1 : 2);
      fresh.erase(it);
    }
  }
  void WritePoly(std::string& out, const Poly& p) {
    if (!p.valid()) {
      ok_ = false;
      return;
    }
    std::vector<Symbol> fresh;
    CollectFresh(p, fresh);
    NumberInSomeOrder(std::move(fresh));
    wire::WritePoly(out, p, g_.symbols(), number_);
  }

  const Graph& g_;
  Choices& choices_;
  std::vector<int> ref_;     // The number of a visited node among inputs_ or nodes_, else -1.
  std::vector<int> number_;  // Of a symbol, -1 before it appears.
  std::string kinds_;        // Of the numbered symbols.
  std::vector<NodeId> inputs_, nodes_;
  std::vector<std::vector<NodeId>> operands_;  // Of nodes_, in the order chosen.
  bool ok_ = true;
};

StatusOr<std::string> Smallest(wire::Kind kind, const Graph& g, std::span<const NodeId> roots,
                               const std::vector<base::Condition>* where, bool both) {
  if (g.Reachable(roots).size() > wire::kRuleNodesMax) {
    return base::ResourceExhausted(
        fmt::format("a rule may have at most {} nodes", wire::kRuleNodesMax));
  }
  Choices choices;
  std::string best;
  for (int tried = 0; tried < kSpellingsMax; ++tried) {
    Spelling spelling(g, choices);
    std::string bytes = spelling.Write(kind, roots, where, both);
    if (!spelling.ok()) {
      return base::InvalidArgument("a rule cannot hold an opaque operator or an overflowing size");
    }
    if (best.empty() || bytes.size() < best.size() ||
        (bytes.size() == best.size() && bytes < best)) {
      best = std::move(bytes);
    }
    if (!choices.Next()) return best;
  }
  return base::ResourceExhausted(
      "the rule has too many commutative operators for a canonical form; split it");
}

}  // namespace

StatusOr<std::string> CanonicalBytes(const Rule& rule) {
  std::vector<NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  return Smallest(wire::Kind::kRule, rule.graph, roots, &rule.where, rule.both);
}

StatusOr<std::string> CanonicalBytes(const Graph& g, std::span<const NodeId> roots) {
  return Smallest(wire::Kind::kRenamed, g, roots, nullptr, false);
}

std::string InterfaceBytes(const Graph& g, std::span<const NodeId> roots) {
  const std::vector<NodeId> reachable = g.Reachable(roots);
  std::vector<int> height(g.size(), 0);
  std::map<int, std::vector<NodeId>> levels;
  for (NodeId id : reachable) {
    if (g.node(id).is_input()) continue;
    int h = 0;
    for (NodeId o : g.node(id).operands) h = std::max(h, height[std::size_t(o)] + 1);
    height[std::size_t(id)] = h;
    levels[h].push_back(id);
  }
  const std::vector<int> no_symbols;
  const auto write_size = [&](std::string& out, const Poly& p) {
    CHECK(p.is_constant());
    wire::WritePoly(out, p, g.symbols(), no_symbols);
  };
  const std::size_t inputs = g.inputs().size();
  std::vector<std::size_t> ref(g.size(), 0);
  for (std::size_t k = 0; k < inputs; ++k) ref[std::size_t(g.input_node(int(k)))] = k;
  std::string nodes;
  std::size_t count = 0;
  for (const auto& [h, ids] : levels) {
    std::map<std::string, std::vector<NodeId>> by_bytes;
    for (NodeId id : ids) {
      const graph::Node& n = g.node(id);
      std::string bytes;
      wire::WriteOperator(bytes, *n.op, [&](const Poly& p) { write_size(bytes, p); });
      std::vector<std::size_t> operands;
      for (NodeId o : n.operands) operands.push_back(ref[std::size_t(o)]);
      if (ops::InfoOf(*n.op).commutative && operands[1] < operands[0]) {
        std::swap(operands[0], operands[1]);
      }
      PutVarint(bytes, operands.size());
      for (std::size_t o : operands) PutVarint(bytes, o);
      if (operands.empty() || ops::IsOpaque(*n.op)) {
        PutByte(bytes, static_cast<std::uint8_t>(n.type->dtype));
      }
      by_bytes[std::move(bytes)].push_back(id);
    }
    for (const auto& [bytes, equal] : by_bytes) {
      for (NodeId id : equal) ref[std::size_t(id)] = inputs + count;
      ++count;
      nodes += bytes;
    }
  }
  std::string out;
  PutByte(out, wire::kVersion);
  PutByte(out, static_cast<std::uint8_t>(wire::Kind::kInterface));
  PutVarint(out, 0);
  PutVarint(out, inputs);
  for (std::size_t k = 0; k < inputs; ++k) {
    const graph::Node& n = g.node(g.input_node(int(k)));
    PutByte(out, static_cast<std::uint8_t>(g.input(n.input).kind));
    PutByte(out, static_cast<std::uint8_t>(n.type->dtype));
    PutVarint(out, std::size_t(n.shape().size()));
    for (const Poly& p : n.shape()) write_size(out, p);
  }
  PutVarint(out, count);
  out += nodes;
  PutVarint(out, roots.size());
  for (NodeId id : roots) PutVarint(out, ref[std::size_t(id)]);
  return out;
}

StatusOr<Rule> Canonical(const Rule& rule) {
  ASSIGN_OR_RETURN(const std::string bytes, CanonicalBytes(rule));
  ASSIGN_OR_RETURN(Rule out, DecodeRule(bytes));
  out.name = rule.name;
  out.expect = rule.expect;
  out.float_class = rule.float_class;
  out.line = rule.line;
  return out;
}

}  // namespace tenon::rules
