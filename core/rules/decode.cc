// Reading foreign bytes. Everything is bounded before it is built; the last check writes what was
// read and compares, so that the many ways of spelling one rule differently (unsorted terms, equal
// nodes, conditions that are not normal, symbols out of order) need no checks of their own.
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "core/base/bytes.h"
#include "core/rules/canonical.h"
#include "core/rules/wire.h"

namespace tenon::rules {
namespace {

using base::ByteReader;
using base::Poly;
using graph::Graph;
using graph::NodeId;

std::string NameFrom(const char* letters, std::size_t pool, const char* beyond, std::size_t k) {
  return k < pool ? std::string(1, letters[k]) : fmt::format("{}{}", beyond, k);
}
std::string InputName(std::size_t k) { return NameFrom("abcdefgh", 8, "x", k); }
std::string DimName(std::size_t k) { return NameFrom("mnkrstuvwyz", 11, "n", k); }

// How the symbols of an attribute are called: s0, s1 for strides, ..
char LetterOf(std::string_view field) {
  if (field == "strides") return 's';
  if (field == "pads" || field == "begins" || field == "ends") return 'p';
  if (field == "dilations") return 'd';
  if (field == "kernel_shape") return 'k';
  if (field == "start" || field == "end") return 'i';
  return 'q';
}

class Decoder {
 public:
  // `letters`: for each symbol the letter of its name if it is an attribute; what letters() of
  // another reading of the same bytes said.
  explicit Decoder(std::string_view bytes, std::string letters = "")
      : in_(bytes), letters_(std::move(letters)) {}

  // Reads the graph up to its outputs.
  Status ReadGraph(bool rule) {
    if (in_.Byte() != wire::kVersion) in_.Fail("the version is not 1; it needs another tenon");
    const std::uint8_t kind = in_.Byte();
    kind_ = static_cast<wire::Kind>(kind);
    if (kind < 1 || kind > 3 || rule != (kind_ == wire::Kind::kRule)) {
      in_.Fail(rule ? "these are not the bytes of a rule" : "these are not the bytes of a graph");
    }
    const bool large = kind_ == wire::Kind::kInterface;
    ReadSymbols();
    const std::uint64_t inputs =
        in_.Count(large ? wire::kGraphNodesMax : wire::kRuleNodesMax, "there are too many inputs");
    for (std::uint64_t k = 0; k < inputs && in_.ok(); ++k) ReadInput(k);
    const std::uint64_t nodes =
        in_.Count(large ? wire::kGraphNodesMax : wire::kRuleNodesMax, "there are too many nodes");
    for (std::uint64_t k = 0; k < nodes && in_.ok(); ++k) RETURN_IF_ERROR(ReadNode());
    const std::uint64_t outputs = in_.Count(in_.remaining(), "there are too many outputs");
    for (std::uint64_t k = 0; k < outputs && in_.ok(); ++k) outputs_.push_back(ReadRef());
    return Check();
  }
  std::vector<base::Condition> ReadConditions() {
    std::vector<base::Condition> out;
    const std::uint64_t count = in_.Count(in_.remaining(), "there are too many conditions");
    for (std::uint64_t k = 0; k < count && in_.ok(); ++k) {
      const std::uint8_t kind = in_.Byte();
      if (kind != 1 && kind != 2) in_.Fail("a condition is neither >= nor =");
      out.push_back({static_cast<base::Condition::Kind>(kind), ReadPoly(0)});
    }
    return out;
  }
  bool ReadBool() {
    const std::uint8_t v = in_.Byte();
    if (v > 1) in_.Fail("a flag is neither 0 nor 1");
    return v == 1;
  }
  Status End() {
    in_.End();
    return Check();
  }
  Graph& graph() { return graph_; }
  const std::vector<NodeId>& outputs() const { return outputs_; }
  wire::Kind kind() const { return kind_; }
  const std::string& letters() const { return first_letters_; }

 private:
  Status Check() const {
    if (in_.ok()) return OkStatus();
    return base::DataLoss(fmt::format("byte {}: {}", in_.offset(), in_.error()));
  }

  void ReadSymbols() {
    const std::uint64_t count = in_.Count(wire::kSymbolsMax, "there are too many symbols");
    std::size_t dims = 0;
    std::map<char, int> attributes;
    for (std::uint64_t k = 0; k < count && in_.ok(); ++k) {
      const std::uint8_t kind = in_.Byte();
      if (kind != 1 && kind != 2) in_.Fail("a symbol is neither a dim nor an attribute");
      if (kind == 1) {
        symbols_.push_back(graph_.symbols().Add(DimName(dims++), base::SymbolKind::kDim));
        continue;
      }
      const char letter = k < letters_.size() ? letters_[k] : 'q';
      symbols_.resize(k + 1);
      symbols_[k] = graph_.symbols().Add(fmt::format("{}{}", letter, attributes[letter]++),
                                         base::SymbolKind::kAttr);
    }
    first_letters_.assign(symbols_.size(), '\0');
    named_alone_.assign(symbols_.size(), false);
  }

  Poly ReadPoly(int depth) {
    if (depth > wire::kDivisionsMax) in_.Fail("divisions are nested too deeply");
    Poly sum;
    const std::uint64_t terms = in_.Count(wire::kTermsMax, "a size has too many terms");
    for (std::uint64_t t = 0; t < terms && in_.ok(); ++t) {
      Poly product(in_.Signed());
      const std::uint64_t degree = in_.Count(base::kDegreeMax, "a size has too high a degree");
      for (std::uint64_t k = 0; k < degree && in_.ok(); ++k) product = product * ReadFactor(depth);
      sum = sum + product;
    }
    if (in_.ok() && !sum.valid()) in_.Fail("a size overflows");
    return sum;
  }
  Poly ReadFactor(int depth) {
    const std::uint64_t symbol = in_.Count(symbols_.size(), "there is no such symbol");
    if (!in_.ok()) return {};
    if (symbol > 0) {
      char& letter = first_letters_[symbol - 1];
      if (letter == '\0') letter = LetterOf(field_);
      return Poly::Var(symbols_[symbol - 1]);
    }
    const Poly n = ReadPoly(depth + 1), d = ReadPoly(depth + 1);
    return in_.ok() ? graph_.symbols().FloorDiv(n, d) : Poly();
  }

  // A size that is a symbol alone names it.
  Poly ReadSize() {
    Poly p = ReadPoly(0);
    for (std::size_t k = 0; k < symbols_.size() && in_.ok(); ++k) {
      if (!named_alone_[k] && p == Poly::Var(symbols_[k])) {
        first_letters_[k] = LetterOf(field_);
        named_alone_[k] = true;
      }
    }
    return p;
  }
  graph::Shape ReadShape() {
    graph::Shape shape;
    const std::uint64_t rank = in_.Count(base::kRankMax, "a rank is too high");
    for (std::uint64_t a = 0; a < rank && in_.ok(); ++a) shape.push_back(ReadSize());
    return shape;
  }
  graph::DataType ReadType() {
    const std::uint8_t type = in_.Byte();
    if (type > static_cast<std::uint8_t>(graph::DataType::kBfloat16)) {
      in_.Fail("there is no such element type");
    }
    return static_cast<graph::DataType>(type);
  }
  void ReadInput(std::uint64_t k) {
    const std::uint8_t kind = in_.Byte();
    if (kind != 1 && kind != 2) in_.Fail("an input is neither an activation nor a weight");
    const graph::DataType dtype = ReadType();
    const graph::Shape shape = ReadShape();
    for (const Poly& p : shape) {
      if (p.is_constant() && p.constant() < 1) in_.Fail("an extent is below 1");
    }
    if (!in_.ok()) return;
    refs_.push_back(
        graph_.AddInput(InputName(k), static_cast<graph::InputKind>(kind), {dtype, shape}));
  }

  NodeId ReadRef() {
    const std::uint64_t ref = in_.Varint();
    if (in_.ok() && ref >= refs_.size())
      in_.Fail("a node refers to one that does not stand before it");
    return in_.ok() ? refs_[ref] : graph::kNoNode;
  }
  Status ReadNode() {
    const std::uint64_t wire_id = in_.Varint();
    auto op = wire_id <= 0xffff ? ops::OperatorByWireId(std::uint16_t(wire_id)) : std::nullopt;
    if (!op) in_.Fail("there is no such operator; it needs another tenon");
    RETURN_IF_ERROR(Check());
    const bool opaque = ops::IsOpaque(*op);
    if (opaque && kind_ != wire::Kind::kInterface)
      in_.Fail("a rule cannot hold an opaque operator");
    RETURN_IF_ERROR(ReadAttributes(*op));
    std::vector<NodeId> operands;
    const std::uint64_t count = in_.Count(ops::kArityMax, "there are too many operands");
    for (std::uint64_t k = 0; k < count && in_.ok(); ++k) operands.push_back(ReadRef());
    const graph::DataType dtype = operands.empty() || opaque ? ReadType() : graph::DataType::kFloat;
    RETURN_IF_ERROR(Check());
    const auto id = graph_.Add(*op, operands, dtype);
    if (!id.ok()) return base::DataLoss(base::Message(id.status()));
    refs_.push_back(*id);
    return OkStatus();
  }

  // The value of a field as the type that its default has.
  struct ReadValue {
    Decoder& d;
    ops::AttrValue operator()(std::int64_t) { return d.in_.Signed(); }
    ops::AttrValue operator()(double) {
      const double v = d.in_.Double();
      if (!std::isfinite(v)) d.in_.Fail("a number is not finite");
      return v;
    }
    ops::AttrValue operator()(ops::Activation) {
      const std::uint8_t v = d.in_.Byte();
      if (v > static_cast<std::uint8_t>(ops::Activation::kTanh)) {
        d.in_.Fail("there is no such activation");
      }
      return static_cast<ops::Activation>(v);
    }
    ops::AttrValue operator()(const Poly&) { return d.ReadSize(); }
    ops::AttrValue operator()(const ops::Short<std::int64_t>&) {
      ops::Short<std::int64_t> list;
      const std::uint64_t size = d.in_.Count(base::kRankMax, "a list is too long");
      for (std::uint64_t k = 0; k < size && d.in_.ok(); ++k) list.push_back(d.in_.Signed());
      return list;
    }
    ops::AttrValue operator()(const ops::Short<Poly>&) { return d.ReadShape(); }
  };
  Status ReadAttributes(ops::Operator& op) {
    const std::vector<ops::Attr> defaults = ops::AttrsOf(op);
    const std::uint64_t count = in_.Count(defaults.size(), "there are too many attributes");
    for (std::uint64_t k = 0; k < count && in_.ok(); ++k) {
      const std::uint8_t number = in_.Byte();
      bool known = false;
      for (const ops::Attr& attr : defaults) {
        if (attr.number != number) continue;
        known = true;
        field_ = attr.name;
        const ops::AttrValue value = std::visit(ReadValue{*this}, attr.value);
        RETURN_IF_ERROR(Check());
        RETURN_IF_ERROR(ops::SetAttr(op, attr.name, value));
      }
      if (!known) in_.Fail("there is no such attribute; it needs another tenon");
    }
    return Check();
  }

  ByteReader in_;
  std::string letters_;        // To use.
  std::string first_letters_;  // By the field in which a symbol appears first, or first alone.
  std::vector<bool> named_alone_;
  std::string_view field_;  // Being read.
  wire::Kind kind_ = wire::Kind::kRule;
  Graph graph_;
  std::vector<base::Symbol> symbols_;
  std::vector<NodeId> refs_;
  std::vector<NodeId> outputs_;
};

Status Same(const StatusOr<std::string>& again, std::string_view bytes) {
  if (!again.ok()) return base::DataLoss(base::Message(again.status()));
  if (*again != bytes) return base::DataLoss("the bytes are not the canonical ones");
  return OkStatus();
}

}  // namespace

StatusOr<Rule> DecodeRule(std::string_view bytes) {
  // Names depend on what a symbol is used for, and symbols stand before their uses: read twice.
  Decoder first(bytes);
  RETURN_IF_ERROR(first.ReadGraph(true));
  Decoder d(bytes, first.letters());
  RETURN_IF_ERROR(d.ReadGraph(true));
  const std::vector<NodeId>& outputs = d.outputs();
  Rule rule;
  rule.where = d.ReadConditions();
  rule.both = d.ReadBool();
  RETURN_IF_ERROR(d.End());
  if (outputs.empty() || outputs.size() % 2 != 0) {
    return base::DataLoss("source and target do not have equally many outputs");
  }
  const auto half = outputs.begin() + std::ptrdiff_t(outputs.size() / 2);
  rule.source.assign(outputs.begin(), half);
  rule.target.assign(half, outputs.end());
  rule.graph = std::move(d.graph());
  RETURN_IF_ERROR(Same(CanonicalBytes(rule), bytes));
  return rule;
}

StatusOr<Graph> DecodeGraph(std::string_view bytes) {
  Decoder d(bytes);
  RETURN_IF_ERROR(d.ReadGraph(false));
  RETURN_IF_ERROR(d.End());
  Graph g = std::move(d.graph());
  g.SetOutputs(d.outputs());
  if (d.kind() == wire::Kind::kRenamed) {
    RETURN_IF_ERROR(Same(CanonicalBytes(g, g.outputs()), bytes));
    return g;
  }
  if (g.symbols().size() > 1) return base::DataLoss("a graph with an interface has symbols");
  RETURN_IF_ERROR(Same(InterfaceBytes(g, g.outputs()), bytes));
  return g;
}

}  // namespace tenon::rules
