#include "core/graph/classes.h"

#include <fmt/format.h>

#include "core/base/bytes.h"
#include "core/base/check.h"

namespace tenon::graph {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint64_t kTermsMax = 0x7fffffff;
constexpr std::uint64_t kMemberBytesMin = 1;  // Of a member.
constexpr std::uint64_t kTermBytesMin = 2;    // Of a term: operator and number of operands.

// The terms that the members reach; by term.
std::vector<bool> Needed(const TermTable& table, std::span<const TermId> members) {
  std::vector<bool> needed(table.size(), false);
  for (const TermId id : members) needed[std::size_t(id)] = true;
  for (std::size_t k = table.size(); k-- > 0;) {
    if (!needed[k] || table.is_input(TermId(k))) continue;
    for (const TermId operand : table.operands(TermId(k))) needed[std::size_t(operand)] = true;
  }
  return needed;
}

class Decoder {
 public:
  Decoder(const Universe& universe, std::string_view bytes) : in_(bytes) {
    out_.table = TableOf(universe);
  }

  StatusOr<TermClasses> Read() && {
    if (in_.Byte() != kVersion) in_.Fail("the version is not 1");
    ReadTerms();
    ReadClasses();
    in_.End();
    if (in_.ok()) CheckNeeded();
    if (!in_.ok()) {
      return base::DataLoss(
          fmt::format("classes: at byte {}: {}; run the job again", in_.offset(), in_.error()));
    }
    return std::move(out_);
  }

 private:
  void ReadTerms() {
    const std::uint64_t inputs = std::uint64_t(out_.table.input_count());
    const std::uint64_t count =
        in_.Count(in_.remaining() / kTermBytesMin, "there are too many terms");
    if (count + inputs > kTermsMax) in_.Fail("there are too many terms");
    std::vector<TermId> operands;
    std::vector<TypeId> types;
    for (std::uint64_t k = inputs; k < inputs + count && in_.ok(); ++k) {
      const std::uint64_t op = in_.Varint();
      if (op >= out_.table.operator_count()) in_.Fail("an operator is not of the universe");
      operands.resize(in_.Count(kUniverseArityMax, "there are too many operands"));
      types.clear();
      for (TermId& operand : operands) {
        // Counted back from the term itself: recent ones are near.
        const std::uint64_t back = in_.Varint();
        if (back == 0 || back > k) in_.Fail("an operand is not before its term");
        if (!in_.ok()) return;
        operand = TermId(k - back);
        types.push_back(out_.table.type_id(operand));
      }
      if (!in_.ok()) return;
      const TypeId type = out_.table.Infer(OpId(op), types);
      if (type == kNoType) return in_.Fail("an operator does not fit its operands");
      if (out_.table.AddTyped(OpId(op), operands, type) != TermId(k)) {
        in_.Fail("a term is there twice");
      }
    }
  }

  void ReadClasses() {
    const std::uint64_t count =
        in_.Count(in_.remaining() / (2 * kMemberBytesMin), "there are too many classes");
    std::vector<bool> seen(out_.table.size(), false);
    std::uint64_t first = 0;
    for (std::uint64_t c = 0; c < count && in_.ok(); ++c) {
      const std::uint64_t size =
          in_.Count(in_.remaining() / kMemberBytesMin, "a class is too large");
      if (size < 2) in_.Fail("a class has fewer than two members");
      // The first member follows that of the class before, each other one the one before it.
      std::uint64_t member = first;
      for (std::uint64_t k = 0; k < size && in_.ok(); ++k) {
        const std::uint64_t step = in_.Varint();
        if (step == 0 && (k > 0 || c > 0)) in_.Fail("members are out of order");
        if (step > kTermsMax) in_.Fail("a member is no term");
        member += step;
        if (member >= seen.size()) in_.Fail("a member is no term");
        if (!in_.ok()) return;
        if (seen[member]) in_.Fail("a term is in two classes");
        seen[member] = true;
        out_.members.push_back(TermId(member));
        if (k == 0) first = member;
      }
      out_.at.push_back(out_.members.size());
    }
  }

  void CheckNeeded() {
    const std::vector<bool> needed = Needed(out_.table, out_.members);
    for (std::size_t k = std::size_t(out_.table.input_count()); k < needed.size(); ++k) {
      if (!needed[k]) return in_.Fail("a term is in no class and no member needs it");
    }
  }

  base::ByteReader in_;
  TermClasses out_;
};

}  // namespace

TermClasses Fragment(const Universe& universe, const TermTable& table,
                     std::span<const std::size_t> at, std::span<const TermId> members) {
  TermClasses out;
  out.table = TableOf(universe);
  const std::size_t operators = out.table.operator_count();
  CHECK(out.table.input_count() == table.input_count());
  const std::vector<bool> needed = Needed(table, members);
  std::vector<TermId> to(table.size(), kNoTerm);
  std::vector<TermId> operands;
  for (std::size_t k = 0; k < table.size(); ++k) {
    const TermId id = TermId(k);
    if (table.is_input(id)) to[k] = id;
    if (!needed[k] || table.is_input(id)) continue;
    operands.clear();
    for (const TermId operand : table.operands(id)) operands.push_back(to[std::size_t(operand)]);
    to[k] = out.table.AddTyped(out.table.InternOperator(table.op(id)), operands,
                               out.table.InternType(table.type(id)), table.term_size(id));
  }
  CHECK(out.table.operator_count() == operators);
  out.at.assign(at.begin(), at.end());
  for (const TermId id : members) out.members.push_back(to[std::size_t(id)]);
  return out;
}

std::string EncodeClasses(const TermClasses& fragment) {
  const TermTable& table = fragment.table;
  std::string out;
  base::PutByte(out, kVersion);
  const std::size_t inputs = std::size_t(table.input_count());
  base::PutVarint(out, table.size() - inputs);
  for (std::size_t k = inputs; k < table.size(); ++k) {
    const std::span<const TermId> operands = table.operands(TermId(k));
    base::PutVarint(out, table.op_id(TermId(k)));
    base::PutVarint(out, operands.size());
    for (const TermId operand : operands) base::PutVarint(out, k - std::size_t(operand));
  }
  base::PutVarint(out, fragment.at.size() - 1);
  TermId first = 0;
  for (std::size_t c = 0; c + 1 < fragment.at.size(); ++c) {
    base::PutVarint(out, fragment.at[c + 1] - fragment.at[c]);
    TermId before = first;
    first = fragment.members[fragment.at[c]];
    for (std::size_t k = fragment.at[c]; k < fragment.at[c + 1]; ++k) {
      const TermId member = fragment.members[k];
      CHECK(before < member || (k == fragment.at[c] && c == 0 && before == member));
      base::PutVarint(out, std::uint64_t(member - before));
      before = member;
    }
  }
  return out;
}

StatusOr<TermClasses> DecodeClasses(const Universe& universe, std::string_view bytes) {
  return Decoder(universe, bytes).Read();
}

}  // namespace tenon::graph
