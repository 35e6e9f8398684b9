// The walk against generating everything and keeping what has the right size.
#include "worker/levels.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "proto/convert/universe.h"

namespace tenon::worker {
namespace {

graph::Universe Parse(const std::string& text) {
  auto u = convert::ParseUniverse("outputs: SINGLE max_operators: 3 " + text, "test");
  EXPECT_TRUE(u.ok()) << u.status();
  return *u;
}

// All terms of each size by brute force: every operator on every tuple of what there is, again and
// again; terms beyond the size are left out. Limits and max_elements are checked here once more.
class BruteForce {
 public:
  BruteForce(const graph::Universe& u, int size) : u_(u), table_(graph::TableOf(u)) {
    by_size_.resize(std::size_t(size) + 1);
    std::vector<TermId> terms;
    for (TermId id = 0; id < table_.input_count(); ++id) terms.push_back(id);
    for (int round = 0; round < size; ++round) {
      const std::vector<TermId> known = terms;
      for (const graph::Universe::Operator& o : u.operators) {
        std::vector<TermId> operands;
        Apply(o, known, operands, size, terms);
      }
    }
    for (TermId id : terms) {
      if (!table_.is_input(id))
        by_size_[std::size_t(table_.term_size(id))].insert(table_.Print(id));
    }
  }
  const std::set<std::string>& of_size(int s) const { return by_size_[std::size_t(s)]; }

 private:
  void Apply(const graph::Universe::Operator& o, const std::vector<TermId>& known,
             std::vector<TermId>& operands, int size, std::vector<TermId>& terms) {
    if (int(operands.size()) < o.arity) {
      for (TermId id : known) {
        operands.push_back(id);
        Apply(o, known, operands, size, terms);
        operands.pop_back();
      }
      return;
    }
    if (table_.SizeOf(operands) + 1 > size || !Allowed(o, operands)) return;
    const std::size_t before = table_.size();
    const auto id = table_.Add(o.op, operands);
    if (!id.ok() || table_.size() == before) return;
    if (graph::ElementCount(table_.extents(*id)) <= u_.max_elements) terms.push_back(*id);
  }
  bool Allowed(const graph::Universe::Operator& o, const std::vector<TermId>& operands) {
    for (TermId id : operands) {
      if (!o.same_shape || (o.or_scalar && table_.extents(id).empty())) continue;
      for (TermId other : operands) {
        if (o.or_scalar && table_.extents(other).empty()) continue;
        if (!(table_.extents(id) == table_.extents(other))) return false;
      }
    }
    for (const graph::Universe::Limit& limit : o.limits) {
      const TermId id = operands[std::size_t(limit.operand)];
      const graph::Extents& extents = table_.extents(id);
      if (!limit.extents.empty() && limit.extents.size() != extents.size()) return false;
      for (int a = 0; a < limit.extents.size(); ++a) {
        if (limit.extents[a] != 0 && limit.extents[a] != extents[a]) return false;
      }
      if (limit.kind) {
        bool weight = true;
        for (int k = 0; k < table_.input_count(); ++k) {
          const bool used = (table_.input_mask(id) >> k & 1) != 0;
          weight = weight && (!used || table_.input(k).kind == graph::InputKind::kWeight);
        }
        if (weight != (*limit.kind == graph::InputKind::kWeight)) return false;
      }
    }
    return true;
  }

  const graph::Universe& u_;
  graph::TermTable table_;
  std::vector<std::set<std::string>> by_size_;
};

std::string Print(const Levels& levels, const Candidate& c) {
  graph::TermTable copy = levels.table();
  const auto id =
      copy.Add(levels.universe().operators[std::size_t(c.operator_index)].op, c.operands);
  EXPECT_TRUE(id.ok());
  EXPECT_EQ(copy.type(*id), copy.type_at(c.type));
  return copy.Print(*id);
}

void ExpectEveryGraphOnce(const graph::Universe& u, int size) {
  const BruteForce all(u, size);
  Levels levels(u, false);
  for (int s = 1; s <= size; ++s) {
    std::set<std::string> seen;
    for (std::uint64_t unit = 0; unit < levels.unit_count(); ++unit) {
      levels.Walk(unit, [&](const Candidate& c) {
        std::string text;
        if (s < size) {
          text = levels.table().Print(levels.Add(c));
        } else {
          text = Print(levels, c);
        }
        EXPECT_TRUE(seen.insert(text).second) << text << " came twice";
      });
    }
    EXPECT_EQ(seen, all.of_size(s)) << "size " << s;
    EXPECT_FALSE(seen.empty());
    if (s < size) levels.CompleteLevel();
  }
}

TEST(LevelsTest, EveryGraphOfASmallMatrixUniverseComesOnce) {
  ExpectEveryGraphOnce(
      Parse("name: \"m\" max_elements: 12 input { name: \"a\" kind: ACTIVATION shape: [2, 2] } "
            "operator { name: \"Transpose\" } operator { name: \"MatMul\" } "
            "operator { name: \"Concat\" arity: 2 attribute { name: \"axis\" value { int: 1 } } }"),
      3);
}

TEST(LevelsTest, OperatorsWithThreeOperandsComeOnce) {
  ExpectEveryGraphOnce(
      Parse(
          "name: \"c\" input { name: \"x\" kind: ACTIVATION shape: [1, 2, 2, 2] } "
          "input { name: \"w\" kind: WEIGHT shape: [2, 2, 1, 1] } "
          "operator { name: \"Conv\" arity: 3 attribute { name: \"residual\" value { int: 1 } } } "
          "operator { name: \"Concat\" arity: 3 attribute { name: \"axis\" value { int: 1 } } }"),
      2);
  ExpectEveryGraphOnce(
      Parse("name: \"c\" max_elements: 8 input { name: \"x\" kind: ACTIVATION shape: [2] } "
            "operator { name: \"Relu\" } "
            "operator { name: \"Concat\" arity: 3 } operator { name: \"Concat\" arity: 2 }"),
      3);
}

TEST(LevelsTest, ConstantsLimitsAndKindsAreObserved) {
  ExpectEveryGraphOnce(
      Parse("name: \"k\" input { name: \"a\" kind: ACTIVATION shape: [2, 2] } "
            "input { name: \"w\" kind: WEIGHT shape: [2, 2] } "
            "operator { name: \"Eye\" attribute { name: \"size\" value { int: 2 } } } "
            "operator { name: \"MatMul\" operand { index: 0 kind: ACTIVATION } operand { index: 1 "
            "kind: WEIGHT shape: [0, 2] } } operator { name: \"Add\" same_shape: true } "
            "operator { name: \"Concat\" arity: 2 attribute { name: \"axis\" value { int: 1 } } "
            "operand { index: 1 shape: [2, 2] } }"),
      3);
}

TEST(LevelsTest, ScalarsMayMeetEveryShapeWhereOnlyEqualOnesMay) {
  const graph::Universe u = Parse(
      "name: \"s\" input { name: \"a\" kind: ACTIVATION shape: [2] } "
      "input { name: \"b\" kind: ACTIVATION shape: [1, 2] } "
      "input { name: \"s\" kind: ACTIVATION } "
      "operator { name: \"Mul\" same_shape: true or_scalar: true }");
  ExpectEveryGraphOnce(u, 2);
  Levels levels(u, false);
  std::set<std::string> seen;
  for (std::uint64_t unit = 0; unit < levels.unit_count(); ++unit) {
    levels.Walk(unit, [&](const Candidate& c) { seen.insert(Print(levels, c)); });
  }
  EXPECT_EQ(seen, (std::set<std::string>{"Mul(a, a)", "Mul(b, b)", "Mul(s, s)", "Mul(a, s)",
                                         "Mul(s, a)", "Mul(b, s)", "Mul(s, b)"}));
}

TEST(LevelsTest, NormalOrderKeepsOneOrderOfCommutativeOperands) {
  const graph::Universe u = Parse(
      "name: \"n\" input { name: \"a\" kind: ACTIVATION shape: [2] } "
      "input { name: \"b\" kind: ACTIVATION shape: [2] } operator { name: \"Add\" } "
      "operator { name: \"Sub\" }");
  Levels levels(u, true);
  std::set<std::string> seen;
  for (std::uint64_t unit = 0; unit < levels.unit_count(); ++unit) {
    levels.Walk(unit, [&](const Candidate& c) { seen.insert(Print(levels, c)); });
  }
  EXPECT_EQ(seen, (std::set<std::string>{"Add(a, a)", "Add(a, b)", "Add(b, b)", "Sub(a, a)",
                                         "Sub(a, b)", "Sub(b, a)", "Sub(b, b)"}));
}

}  // namespace
}  // namespace tenon::worker
